#include "attune/train/prepare.h"
#include "attune/base/json_fields.h"
#include "attune/base/sha256.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/train/reverse_task.h"
#include "tests/train/small_tasks.h"

namespace attune {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const PrepareOptions kSmallShards = {.shard_tokens = 200};

class PrepareTest : public ::testing::Test {
 protected:
  RunConfig config_of(Architecture architecture) {
    switch (architecture) {
      case Architecture::encoder_decoder:
        write_reverse_text(folder_, "train", 200, 2, 5, 1);
        write_reverse_text(folder_, "valid", 20, 2, 5, 2);
        return reverse_config(folder_);
      case Architecture::encoder_classifier:
        write_keyword_text(folder_ / "train.tsv", 200, 1);
        write_keyword_text(folder_ / "valid.tsv", 20, 2);
        return keyword_config(folder_);
      case Architecture::encoder_masked_lm:
        write_pairs_text(folder_ / "train.txt", 200, 1);
        write_pairs_text(folder_ / "valid.txt", 20, 2);
        return pairs_config(folder_);
      case Architecture::decoder_lm:
      case Architecture::encoder:  // is not trained
        break;
    }
    RunConfig config = rhyme_config(folder_);
    config.data.valid_fraction = 0;
    config.data.valid_files = config.data.train_files;
    return config;
  }

  /// The same run on what was prepared of its text.
  RunConfig prepared(RunConfig config, const PrepareOptions& options = kSmallShards) {
    fs::remove_all(folder_ / "prepared");
    index_ = prepare_corpus(config, folder_ / "prepared", options);
    config.data.train_source.clear();
    config.data.train_target.clear();
    config.data.train_files.clear();
    config.data.prepared = (folder_ / "prepared").string();
    return config;
  }
  std::string refusal(const RunConfig& config, bool resume = false) {
    return message_of<Error>([&] { train(config, folder_ / "run", resume); });
  }
  void put(const std::string& file, size_t place, const std::string& bytes) {
    std::string text = read_file(folder_ / "prepared" / file);
    text.replace(place, bytes.size(), bytes);
    write_file(folder_ / "prepared" / file, text);
  }
  /// Makes the index agree with a file that was changed.
  void accept(const std::string& file) {
    const std::string before = index_.shards.at(0).sha256;
    std::string text = read_file(folder_ / "prepared" / "index.json");
    text.replace(text.find(before), before.size(), sha256(read_file(folder_ / "prepared" / file)));
    write_file(folder_ / "prepared" / "index.json", text);
  }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_.path())) names.push_back(entry.path().filename().string());
    return names;
  }

  OneThread one_thread_;
  TemporaryFolder folder_;
  PreparedIndex index_;
};

struct PreparedCase {
  Architecture architecture;
};
void PrintTo(const PreparedCase& c, std::ostream* out) {
  *out << enum_name(c.architecture);
}

class PreparedRun : public PrepareTest, public ::testing::WithParamInterface<PreparedCase> {};

TEST_P(PreparedRun, OneShardTrainsAsTheTextDoes) {
  RunConfig config = config_of(GetParam().architecture);
  config.train.steps = 12;
  config.train.checkpoint_every = 12;
  const TrainedRun text = train(config, folder_ / "text");
  const TrainedRun run = train(prepared(config, {}), folder_ / "shard");
  EXPECT_EQ(index_.shards.size(), 1);
  EXPECT_EQ(run.seen.start.corpus.size, text.seen.start.corpus.size);
  EXPECT_EQ(run.seen.start.corpus.validation_examples, text.seen.start.corpus.validation_examples);
  EXPECT_EQ(run.seen.start.model, text.seen.start.model);
  EXPECT_EQ(tensors_of(checkpoint_file(folder_ / "shard", 12)), tensors_of(checkpoint_file(folder_ / "text", 12)));
}

TEST_P(PreparedRun, ManyShardsResumeBitForBit) {
  RunConfig config = prepared(config_of(GetParam().architecture));
  EXPECT_GT(index_.shards.size(), 3);
  config.train.accumulate = 2;
  expect_resume_is_exact(config, folder_);
}

TEST_P(PreparedRun, TheNumberOfThreadsChangesNothing) {
  RunConfig config = prepared(config_of(GetParam().architecture));
  config.train.steps = 10;
  train(config, folder_ / "one");
  const ThreadScope two_threads(2);
  train(config, folder_ / "two");
  EXPECT_EQ(tensors_of(folder_ / "two" / "model" / "model.safetensors"),
            tensors_of(folder_ / "one" / "model" / "model.safetensors"));
}

INSTANTIATE_TEST_SUITE_P(Prepare, PreparedRun,
                         ::testing::Values(PreparedCase{Architecture::encoder_decoder},
                                           PreparedCase{Architecture::encoder_classifier},
                                           PreparedCase{Architecture::encoder_masked_lm},
                                           PreparedCase{Architecture::decoder_lm}),
                         [](const auto& test) { return enum_name(test.param.architecture); });

TEST_F(PrepareTest, AStreamIsCutWhereAShardIsFull) {
  const RunConfig config = config_of(Architecture::decoder_lm);
  prepared(config, {.shard_tokens = 1000});
  const auto characters = static_cast<int64_t>(30 * std::string(kRhyme).size());
  EXPECT_EQ(index_.texts, 1);
  EXPECT_EQ(index_.tokens(), characters);
  EXPECT_EQ(index_.shards.size(), static_cast<size_t>(characters + 999) / 1000);
  EXPECT_EQ(index_.shards[0].tokens, 1000);
  EXPECT_EQ(index_.shards[0].examples, 1);
  const TokenCorpus corpus = open_prepared(folder_ / "prepared", index_);
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < corpus.shards(); ++i) corpus.open(i)->append_sequence(0, ids);
  EXPECT_EQ(ids, load_text({folder_ / "rhyme.txt"}, *load_tokenizer(folder_ / "prepared" / "vocabulary.json")).ids);
}

TEST_F(PrepareTest, TheIndexIsReadAsItWasWritten) {
  RunConfig config = config_of(Architecture::encoder_classifier);
  config.data.max_tokens = 6;
  prepared(config);
  const PreparedIndex read = read_prepared_index(folder_ / "prepared");
  EXPECT_EQ(read.kind, PreparedKind::labelled);
  EXPECT_THAT(read.labels, ElementsAre("blue", "green", "red"));
  EXPECT_EQ(read.options, Json({{"max_tokens", 6}}));
  EXPECT_EQ(read.texts, 200);
  EXPECT_GT(read.cut, 0);
  EXPECT_EQ(read.tokens(), index_.tokens());
  ASSERT_EQ(read.shards.size(), index_.shards.size());
  EXPECT_EQ(read.shards.back().sha256, index_.shards.back().sha256);
  EXPECT_NO_THROW(verify_prepared(folder_ / "prepared", read));
}

TEST_F(PrepareTest, WhatIsStoppedLeavesNothing) {
  const RunConfig config = config_of(Architecture::encoder_decoder);
  const std::vector<std::string> before = names();
  struct Stop {};
  int calls = 0;
  EXPECT_THROW(prepare_corpus(config, folder_ / "prepared",
                              {.shard_tokens = 10,
                               .progress =
                                   [&](const PrepareProgress& p) {
                                     if (++calls == 1) {
                                       EXPECT_EQ(p.tokens, 0);
                                     }
                                     if (p.shards > 0) throw Stop();
                                   }}),
               Stop);
  EXPECT_EQ(names(), before);
  make_directories(folder_ / "there");
  EXPECT_THAT(message_of<FileError>([&] { prepare_corpus(config, folder_ / "there"); }),
              HasSubstr("there: is there already"));
}

TEST_F(PrepareTest, WhatDoesNotFitTheConfigurationIsNamed) {
  RunConfig config = prepared(config_of(Architecture::encoder_decoder));
  RunConfig other = config;
  other.data.train_source = {"a"};
  other.data.train_target = {"b"};
  EXPECT_THAT(refusal(other), HasSubstr("data.train_source names a: data.prepared = "));
  other = config;
  other.data.tokenizer = "t.model";
  EXPECT_THAT(refusal(other), HasSubstr("data.tokenizer = \"t.model\": data.prepared = "));
  other = config;
  other.data.max_tokens_per_sentence = 100;
  EXPECT_THAT(refusal(other), HasSubstr("data.max_tokens_per_sentence = 100: data.prepared = "));
  other = small_config(Architecture::decoder_lm);
  other.data.prepared = config.data.prepared;
  EXPECT_THAT(refusal(other), HasSubstr("holds pairs, architecture = \"decoder_lm\" reads documents"));
  other.data.valid_fraction = 0.1;
  EXPECT_THAT(refusal(other), HasSubstr("data.valid_fraction = 0.1: data.prepared = "));
  EXPECT_THAT(message_of<ConfigError>([&] { prepare_corpus(config, folder_ / "again"); }),
              HasSubstr("data.prepared = "));
}

TEST_F(PrepareTest, WhatAFolderHasNoPlaceForIsRefusedByItsField) {
  const auto refused = [&](const RunConfig& config) {
    return message_of<ConfigError>([&] { prepare_corpus(config, folder_ / "prepared"); });
  };
  const std::string why = ": what is prepared has single texts with bos and eos; train on the text itself";
  RunConfig framed = config_of(Architecture::encoder_classifier);
  framed.data.tokenizer_frames_texts = true;
  EXPECT_EQ(refused(framed), "data.tokenizer_frames_texts = true" + why);
  framed.train.initialize_from = "model";
  EXPECT_EQ(refused(framed), "train.initialize_from = \"model\"" + why);
  RunConfig pairs = config_of(Architecture::encoder_classifier);
  pairs.data.second_text_field = "b";
  EXPECT_EQ(refused(pairs), "data.second_text_field = \"b\"" + why);
  RunConfig translation = config_of(Architecture::encoder_decoder);
  translation.generation.special_tokens = true;
  EXPECT_EQ(refused(translation), "generation.special_tokens = true" + why);
  RunConfig answers = config_of(Architecture::decoder_lm);
  answers.data.text_unit = TextUnit::answer;
  EXPECT_EQ(refused(answers),
            "data.text_unit = \"answer\": prompts and answers cannot be prepared; train on the text itself "
            "(data.train_files)");
}

TEST_F(PrepareTest, DamagedFoldersAreRefused) {
  const RunConfig config = prepared(config_of(Architecture::encoder_decoder));
  put("00001.tokens", 8, "\x07");
  EXPECT_THAT(refusal(config), HasSubstr("00001.tokens: version is 7, expected 1"));
  const auto verify = [&] { verify_prepared(folder_ / "prepared", index_); };
  EXPECT_THAT(message_of<FileError>(verify), HasSubstr("00001.tokens: sha256 is not what the index says"));
  fs::resize_file(folder_ / "prepared" / "00001.tokens", 100);
  EXPECT_THAT(refusal(config), HasSubstr("00001.tokens: has 100 bytes, index.json says "));
  fs::remove(folder_ / "prepared" / "00001.tokens");
  EXPECT_THAT(refusal(config), HasSubstr("00001.tokens"));
  const RunConfig other = prepared(config_of(Architecture::encoder_decoder));
  write_file(folder_ / "prepared" / "vocabulary.json", "{}");
  EXPECT_THAT(refusal(other), HasSubstr("vocabulary.json: is not the tokenizer that the text was prepared with"));
}

// Another valid id: only the checksum tells.
TEST_F(PrepareTest, AChangedTokenIsNoticedBeforeItIsUsed) {
  RunConfig config = prepared(config_of(Architecture::encoder_decoder));
  const size_t last = static_cast<size_t>(file_bytes(folder_ / "prepared" / "00000.tokens")) - 8;
  const char before = read_file(folder_ / "prepared" / "00000.tokens")[last];
  put("00000.tokens", last, before == 4 ? "\x05" : "\x04");
  config.train.steps = 1000;
  EXPECT_THAT(message_of<FileError>([&] { train(config, folder_ / "run"); }),
              HasSubstr("00000.tokens: sha256 is not what the index says"));
}

// The id is met by the thread that forms the batches of the next step.
TEST_F(PrepareTest, AnErrorOfTheThreadThatFormsBatchesIsTheRuns) {
  RunConfig config = prepared(config_of(Architecture::encoder_decoder), {});
  put("00000.tokens", static_cast<size_t>(index_.bytes()) - 8, "\xff\xff");
  accept("00000.tokens");
  config.train.steps = 100;
  std::vector<int64_t> steps;
  const std::string message = message_of<DataError>(
      [&] { train(config, folder_ / "run", false, [&](const StepReport& r) { steps.push_back(r.step); }); });
  EXPECT_THAT(message, HasSubstr("which is outside the vocabulary of 12"));
  EXPECT_THAT(message, HasSubstr("00000.tokens"));
  EXPECT_FALSE(steps.empty()) << "the first batch was another one";
}

TEST_F(PrepareTest, WhereTheTextsForValidationStandIsAConditionOfTheirFigures) {
  RunConfig config = prepared(config_of(Architecture::encoder_classifier));
  const auto resumed = [&](const std::string& label_field) {
    config.train.steps += 2;
    config.data.label_field = label_field;
    return train(config, folder_ / "run", true).seen.messages;
  };
  config.train.steps = 2;
  train(config, folder_ / "run");
  EXPECT_THAT(resumed("kind"),
              ElementsAre(HasSubstr("is forgotten: data.label_field changed from \"label\" to \"kind\"")));
  // Checkpoints of earlier versions do not say it.
  change_state(checkpoint_file(folder_ / "run", config.train.steps), [](Json& state) {
    for (const char* field : {"data.format", "data.label_field", "data.text_field", "data.second_text_field"})
      state["validation"].erase(field);
  });
  EXPECT_THAT(resumed("label"), ElementsAre());
}

// Another machine may train on what one without a GPU prepares.
TEST_F(PrepareTest, NeedsNoDeviceForTraining) {
  RunConfig config = config_of(Architecture::decoder_lm);
  config.train.device = "cuda:63";
  EXPECT_THAT(refusal(prepared(config)), HasSubstr("train.device = cuda:63: "));
  EXPECT_EQ(index_.texts, 1);
}

TEST_F(PrepareTest, ARunThatResumesKeepsItsTokenizer) {
  RunConfig config = prepared(config_of(Architecture::encoder_decoder));
  config.train.steps = 2;
  train(config, folder_ / "run");
  write_reverse_text(folder_, "train", 200, 2, 3, 9);
  RunConfig text = config_of(Architecture::encoder_decoder);
  text.data.subword_marker = "@@";
  RunConfig other = prepared(text);
  other.train.steps = 4;
  other.data.subword_marker = "";
  EXPECT_THAT(refusal(other, true), HasSubstr("is not the tokenizer that the text was prepared with"));
}

}  // namespace
}  // namespace attune
