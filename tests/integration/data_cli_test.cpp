// attune data as its users run it.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <csignal>

#include "attune/base/json_fields.h"
#include "attune/base/sha256.h"
#include "tests/integration/cli_fixture.h"
#include "tests/train/small_tasks.h"

namespace attune {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class DataCliTest : public CliFixture {
 protected:
  std::vector<std::string> prepare(std::vector<std::string> more = {}) {
    RunConfig config = rhyme_config(folder_);
    config.data.valid_fraction = 0;
    config.train.steps = 3;
    config.train.log_every = 1;
    config.train.threads = 1;
    write_file(folder_ / "run.toml", write_toml(config));
    std::vector<std::string> words = {"data",           "prepare",    (folder_ / "run.toml").string(), "--out", out_,
                                      "--shard-tokens", shard_tokens_};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_.path())) names.push_back(entry.path().filename().string());
    return names;
  }
  std::string shard_tokens_ = "500";
  const std::string out_ = (folder_ / "prepared").string();
};

TEST_F(DataCliTest, PreparesShowsAndTrains) {
  const CommandResult prepared = run_attune(prepare({"--json"}));
  ASSERT_EQ(prepared.status, 0) << prepared.errors;
  EXPECT_THAT(prepared.errors, AllOf(HasSubstr("2040/2040"), HasSubstr("tok/s"), HasSubstr("tokens")))
      << "a log has lines";
  const Json json = Json::parse(prepared.output);
  const auto characters = static_cast<int64_t>(30 * std::string(kRhyme).size());
  EXPECT_EQ(json["tokens"], characters);
  EXPECT_EQ(json["kind"], "documents");
  EXPECT_EQ(json["shards"], (characters + 499) / 500);
  EXPECT_EQ(json["options"]["text_unit"], "stream");
  EXPECT_EQ(json["tokenizers"][0]["sha256"], sha256(read_file(folder_ / "prepared" / "vocabulary.json")));

  EXPECT_THAT(output_of({"data", "info", out_}),
              AllOf(HasSubstr("kind        documents\n"), HasSubstr("option      data.text_unit = \"stream\"\n")));
  EXPECT_EQ(Json::parse(output_of({"data", "info", out_, "--json"}))["bytes"], json["bytes"]);

  const CommandResult trained = run_attune({"train", (folder_ / "run.toml").string(), "--set", "data.train_files=[]",
                                            "--set", "data.prepared=" + out_, "--out", (folder_ / "run").string()});
  EXPECT_EQ(trained.status, 0) << trained.errors;
  EXPECT_THAT(trained.errors, HasSubstr(fmt::format("1 document, {} tokens", characters)));
  EXPECT_TRUE(fs::exists(folder_ / "run" / "model" / "model.safetensors"));
}

TEST_F(DataCliTest, TheDeviceOfTrainingNeedNotBeHere) {
  const CommandResult prepared = run_attune(prepare({"--set", "train.device=cuda:63"}));
  EXPECT_EQ(prepared.status, 0) << prepared.errors;
}

TEST_F(DataCliTest, VerifyFindsWhatWasChanged) {
  ASSERT_EQ(run_attune(prepare()).status, 0);
  const CommandResult good = run_attune({"data", "info", out_, "--verify"});
  EXPECT_EQ(good.status, 0) << good.errors;
  EXPECT_THAT(good.errors, HasSubstr("every file is as it was written"));
  std::string bytes = read_file(folder_ / "prepared" / "00001.tokens");
  bytes[bytes.size() - 9] ^= 1;
  write_file(folder_ / "prepared" / "00001.tokens", bytes);
  EXPECT_EQ(run_attune({"data", "info", out_}).status, 0);
  const CommandResult bad = run_attune({"data", "info", out_, "--verify"});
  EXPECT_EQ(bad.status, 1);
  EXPECT_THAT(bad.errors, HasSubstr("00001.tokens: sha256 is not what the index says"));
}

TEST_F(DataCliTest, WhatCannotBeIsSaidInOneLine) {
  EXPECT_THAT(refusal(run_attune({"data", "prepare", "--out", out_})), HasSubstr("a configuration file is needed"));
  shard_tokens_ = "0";
  EXPECT_THAT(refusal(run_attune(prepare())), HasSubstr("shard_tokens = 0"));
  shard_tokens_ = "500";
  EXPECT_THAT(refusal(run_attune(prepare({"--set", "data.valid_fraction=0.1"}))),
              HasSubstr("data.valid_fraction = 0.1"));
  EXPECT_THAT(refusal(run_attune({"data", "info", folder_.path().string()})), HasSubstr("index.json"));
  EXPECT_FALSE(fs::exists(out_));
  ASSERT_EQ(run_attune(prepare()).status, 0);
  EXPECT_THAT(refusal(run_attune(prepare())), HasSubstr("prepared: is there already"));
}

// The text is a pipe that never ends.
TEST_F(DataCliTest, CtrlCLeavesNothing) {
  const std::string pipe = (folder_ / "pipe").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  shard_tokens_ = "8000000";  // each is synced
  const std::vector<std::string> words =
      prepare({"--set", "data.train_files=" + pipe, "--set", "data.tokenizer_type=bytes"});
  const std::vector<std::string> before = names();
  RunningCommand writer({"sh", "-c", "yes 'The cat sat on the mat.' > '" + pipe + "'"});
  RunningCommand command(attune_command(words));
  EXPECT_TRUE(command.wait_for_error_text("tok/s"));
  EXPECT_NE(names(), before);
  command.send(SIGINT);
  EXPECT_EQ(command.wait().status, 130);
  EXPECT_EQ(names(), before);
}

}  // namespace
}  // namespace attune
