#include "attune/train/run_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attune/base/file.h"
#include "tests/support/errors.h"
#include "tests/support/file_size_limit.h"
#include "tests/train/reverse_training.h"

namespace attune {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class RunFolderTest : public ReverseTraining {
 protected:
  RunFolderTest() { config_.train.steps = 2; }

  // Every file below the folder with its content, events and the lock aside.
  std::map<std::string, std::string> content_of(const std::string& name) const {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(folder_ / name))
      if (entry.is_regular_file()) files[entry.path().lexically_relative(folder_ / name)] = read_file(entry.path());
    return files;
  }
  void put(const std::string& path, const std::string& text = "mine") {
    make_directories((folder_ / path).parent_path());
    write_file(folder_ / path, text);
  }
  // A start, with and without --resume, is refused and changes nothing.
  std::string refusal(const std::string& name) {
    const auto before = content_of(name);
    std::string message;
    for (const bool resume : {false, true})
      message = message_of<ConfigError>([&] { train(config_, folder_ / name, resume); });
    EXPECT_EQ(content_of(name), before);
    return message;
  }
  // A run that ended before its first checkpoint, as after kill -9.
  void begin(const std::string& name) {
    EXPECT_THROW(train(config_, folder_ / name, false, [](const StepReport&) { throw std::logic_error("killed"); }),
                 std::logic_error);
  }
};

TEST_F(RunFolderTest, AFolderWithCheckpointsOfSomebodyElseIsRefused) {
  for (const char* file : {"config.toml", "tokenizer.json", "metrics.jsonl", "model/config.json"})
    put(std::string("other/") + file);
  put("other/checkpoints/epoch1.pt");
  EXPECT_THAT(refusal("other"), HasSubstr("other: has other files in it ("));
  put("other/checkpoints/step-00000001.safetensors");
  EXPECT_THAT(refusal("other"), HasSubstr("other: has other files in it ("));
}

TEST_F(RunFolderTest, ALockOrAnOwnListAloneProvesNothing) {
  put("other/run.lock", "");
  put("other/config.toml");
  EXPECT_THAT(refusal("other"), HasSubstr("other: has other files in it (config.toml)"));
  put("list/run.json", R"({"files": ["config.toml"]})");
  EXPECT_THAT(refusal("list"), HasSubstr("list: has other files in it (run.json)"));
}

TEST_F(RunFolderTest, AStartThatFailsBeforeItWroteLeavesNothing) {
  RunConfig wrong = config_;
  wrong.data.train_source = {(folder_ / "nofile").string()};
  EXPECT_THROW(train(wrong, folder_ / "new" / "run"), Error);
  EXPECT_FALSE(fs::exists(folder_ / "new"));
  {
    const FileSizeLimit full(0);
    EXPECT_THAT(message_of<FileError>([&] { train(config_, folder_ / "new" / "run"); }), HasSubstr("cannot write"));
    EXPECT_FALSE(fs::exists(folder_ / "new"));
  }
  fs::create_directory(folder_ / "there");
  EXPECT_THROW(train(wrong, folder_ / "there"), Error);
  EXPECT_TRUE(fs::is_empty(folder_ / "there"));

  put("list/run.json", R"({"files": {"x": []}})");
  put("list/config.toml");
  EXPECT_THAT(refusal("list"), HasSubstr("config.toml: is not as a run has written it"));
  EXPECT_FALSE(fs::exists(folder_ / "list" / kLockFile));
  train(config_, folder_ / "run");
  fs::remove(folder_ / "run" / kLockFile);
  EXPECT_THROW(train(config_, folder_ / "run"), ConfigError);
  EXPECT_FALSE(fs::exists(folder_ / "run" / kLockFile));
}

TEST_F(RunFolderTest, AListThatCannotBeReadIsNamedWithTheReason) {
  train(config_, folder_ / "run");
  const fs::path list = folder_ / "run" / kRunFile;
  const auto message = [&] { return message_of<FileError>([&] { train(config_, folder_ / "run", true); }); };
  fs::remove(list);
  fs::create_directory(list);
  EXPECT_EQ(message(), "cannot read " + list.string() + ": it is a folder");
  fs::remove(list);
  fs::create_symlink("nowhere", list);
  EXPECT_EQ(message(), "cannot open " + list.string() + ": No such file or directory");
}

TEST_F(RunFolderTest, ARunWhoseFolderIsRemovedEndsAndMakesNoOther) {
  const auto remove = [&](const StepReport&) { fs::remove_all(folder_ / "run"); };
  for (const int64_t log_every : {1, 100}) {
    config_.train.log_every = log_every;
    EXPECT_THAT(message_of<FileError>([&] { train(config_, folder_ / "run", false, remove); }),
                HasSubstr("run: the folder of this run is gone"));
    EXPECT_FALSE(fs::exists(folder_ / "run"));
  }
  config_.train.checkpoint_every = 1;  // which comes before the log's next entry
  EXPECT_THAT(message_of<FileError>([&] { train(config_, folder_ / "run", false, remove); }),
              HasSubstr("run: the folder of this run is gone"));
  EXPECT_FALSE(fs::exists(folder_ / "run"));
  const auto replace = [&](const StepReport& report) {
    remove(report);
    fs::create_directory(folder_ / "run");
  };
  EXPECT_THAT(message_of<FileError>([&] { train(config_, folder_ / "run", false, replace); }),
              HasSubstr("run: the folder of this run is gone"));
  EXPECT_TRUE(fs::is_empty(folder_ / "run"));
}

TEST_F(RunFolderTest, ARunWithoutCheckpointsReplacesOnlyWhatItWrote) {
  begin("run");
  put("run/tokenizer.json");
  EXPECT_THAT(refusal("run"), HasSubstr("tokenizer.json: is not as a run has written it"));
  fs::remove(folder_ / "run" / "tokenizer.json");

  const std::string own = read_file(folder_ / "run" / "config.toml");
  for (const char* name : {"config.toml", "vocabulary.json"}) {
    const std::string written = read_file(folder_ / "run" / name);
    put(std::string("run/") + name);
    EXPECT_THAT(refusal("run"), HasSubstr(std::string(name) + ": is not as a run has written it")) << name;
    put(std::string("run/") + name, written);
  }
  put("run/model/config.json");
  EXPECT_THAT(refusal("run"), HasSubstr("model: is not as a run has written it"));
  fs::remove_all(folder_ / "run" / "model");

  put("run/notes.txt");
  config_.train.log_every = 1;
  train(config_, folder_ / "run");
  EXPECT_NE(read_file(folder_ / "run" / "config.toml"), own);
  EXPECT_EQ(read_file(folder_ / "run" / "notes.txt"), "mine");
}

TEST_F(RunFolderTest, ANewKindOfTokenizerTakesThePlaceOfTheRunsOwn) {
  begin("run");
  ASSERT_TRUE(fs::exists(folder_ / "run" / "vocabulary.json"));
  config_.data.tokenizer_type = TokenizerKind::unigram;
  config_.data.vocab_size = 20;
  train(config_, folder_ / "run");
  EXPECT_FALSE(fs::exists(folder_ / "run" / "vocabulary.json"));
  EXPECT_TRUE(fs::exists(folder_ / "run" / "tokenizer.model"));
}

TEST_F(RunFolderTest, AModelThatTheRunDidNotWriteEndsItWithAnError) {
  const auto put_model = [&](const StepReport&) { put("run/model/config.json"); };
  EXPECT_THAT(message_of<ConfigError>([&] { train(config_, folder_ / "run", false, put_model); }),
              HasSubstr("model: is not as a run has written it"));
  EXPECT_EQ(read_file(folder_ / "run" / "model" / "config.json"), "mine");
  EXPECT_THAT(message_of<ConfigError>([&] { train(config_, folder_ / "run", true); }), HasSubstr("model: is not"));
  fs::remove_all(folder_ / "run" / "model");
  train(config_, folder_ / "run", true);
  EXPECT_TRUE(fs::exists(folder_ / "run" / "model" / "model.safetensors"));
}

TEST_F(RunFolderTest, AChangedConfigurationOfARunIsSetAside) {
  train(config_, folder_ / "run");
  put("run/config.toml", "# mine\n");
  const TrainedRun again = train(config_, folder_ / "run", true);
  ASSERT_EQ(again.seen.messages.size(), 1);
  EXPECT_THAT(again.seen.messages[0], HasSubstr("set aside as config.toml.changed"));
  EXPECT_EQ(read_file(folder_ / "run" / "config.toml.changed"), "# mine\n");
}

TEST_F(RunFolderTest, RunsOfEarlierVersionsAreKnownByTheirCheckpoints) {
  train(config_, folder_ / "run");
  for (const char* name : {kRunFile, kLockFile}) fs::remove(folder_ / "run" / name);
  config_.train.steps = 3;
  EXPECT_EQ(train(config_, folder_ / "run", true).result.step, 3);
  EXPECT_TRUE(fs::exists(folder_ / "run" / kRunFile));

  put("bare/notes.txt");
  fs::create_directory(folder_ / "bare" / "checkpoints");
  EXPECT_THAT(refusal("bare"), HasSubstr("bare: has other files in it (notes.txt)"));
}

TEST_F(RunFolderTest, AFileThatOnlyLooksLikeALockStays) {
  put("other/run.lock", "my lock\n");
  EXPECT_THROW(train(config_, folder_ / "other"), FileError);
  EXPECT_EQ(read_file(folder_ / "other" / "run.lock"), "my lock\n");
}

}  // namespace
}  // namespace attune
