#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attune/io/config_file.h"
#include "attune/text/tokenizer.h"
#include "attune/train/tasks/training_task.h"
#include "tests/support/errors.h"
#include "tests/train/small_tasks.h"

namespace attune {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ClassificationTaskTest : public ::testing::Test {
 protected:
  ClassificationTaskTest() {
    write_keyword_text(folder_ / "train.tsv", 300, 1);
    write_keyword_text(folder_ / "valid.tsv", 40, 2);
    config_ = keyword_config(folder_);
  }
  // At the beginning of the first epoch.
  std::unique_ptr<TrainingTask> task() const {
    std::filesystem::create_directories(folder_ / "run");
    auto made = make_training_task(config_, folder_ / "run", false);
    made->begin_epoch(0);
    return made;
  }

  OneThread one_thread_;
  TemporaryFolder folder_;
  RunConfig config_;
};

TEST_F(ClassificationTaskTest, LearnsAKeyword) {
  config_.train.steps = 150;
  config_.train.batch_tokens = 256;
  config_.train.valid_every = 50;
  config_.train.word_dropout = 0.02;
  const TrainedRun run = train(config_, folder_ / "run");
  EXPECT_THAT(run.seen.start.model.labels, ElementsAre("blue", "green", "red"));
  EXPECT_EQ(run.seen.start.model.vocab, 4 + 8 + 3);
  EXPECT_EQ(run.seen.start.corpus.size.examples, 300);
  EXPECT_EQ(run.seen.start.corpus.validation_examples, 40);
  ASSERT_EQ(run.seen.validations.size(), 3);
  const ValidationReport& last = run.seen.validations.back();
  ASSERT_TRUE(last.classification.has_value());
  EXPECT_GT(last.classification->accuracy, 0.95);
  EXPECT_GT(last.classification->macro_f1, 0.95);
  EXPECT_EQ(last.classification->accuracy, last.loss.accuracy);
  EXPECT_EQ(last.loss.tokens, 40);
  EXPECT_EQ(run.result.best_value, run.seen.validations.back().loss.accuracy);
  EXPECT_EQ(read_model_config(folder_ / "run" / "model").labels, run.seen.start.model.labels);
  const auto metrics = metrics_of(folder_ / "run");
  EXPECT_TRUE(std::ranges::any_of(metrics, [](const auto& line) {
    return line.find("\"valid_accuracy\":") != std::string::npos &&
           line.find("\"valid_macro_f1\":") != std::string::npos;
  }));
}

TEST_F(ClassificationTaskTest, ResumesBitForBit) {
  config_.train.word_dropout = 0.1;
  expect_resume_is_exact(config_, folder_);
}

TEST_F(ClassificationTaskTest, HoldsOutAnEvenSelection) {
  config_.data.valid_files = {};
  config_.data.valid_fraction = 0.25;
  config_.train.steps = 1;
  config_.train.valid_sentences = 70;
  const TrainedRun run = train(config_, folder_ / "run");
  EXPECT_EQ(run.seen.start.corpus.size.examples, 225);
  EXPECT_EQ(run.seen.start.corpus.validation_examples, 70);
  config_.data.valid_fraction = 0.001;
  EXPECT_THAT(message_of<DataError>([&] { train(config_, folder_ / "none"); }),
              HasSubstr("data.valid_fraction = 0.001: 300 texts are too few: none of them would be held out"));
}

TEST_F(ClassificationTaskTest, LearnsATokenizerFromTheTextsAlone) {
  for (const TokenizerKind kind : {TokenizerKind::unigram, TokenizerKind::characters, TokenizerKind::bytes}) {
    write_file(folder_ / "train.tsv", "ZQ\tone two three\nXY\tone two\nXY\tthree three\n");
    config_.data.valid_files = {};
    config_.data.tokenizer_type = kind;
    config_.data.vocab_size = 14;
    config_.train.steps = 1;
    const std::filesystem::path run = folder_ / enum_name(kind);
    train(config_, run);
    const bool is_model = kind == TokenizerKind::unigram;
    const auto tokenizer = load_tokenizer(run / (is_model ? "tokenizer.model" : "vocabulary.json"));
    if (kind == TokenizerKind::bytes) continue;
    for (const int32_t id : tokenizer->encode("ZQ")) EXPECT_NE(tokenizer->piece(id), "Q") << enum_name(kind);
    for (const auto& entry : std::filesystem::directory_iterator(run))
      EXPECT_NE(entry.path().extension(), ".tmp") << entry.path();
  }
}

// The loss of the epoch's first batch in a forward pass of that number, the model itself without dropout.
double loss_of_batch(TrainingTask& task, uint64_t forward) {
  return task.batch(0, forward).loss({}).loss.item();
}

TEST_F(ClassificationTaskTest, WordDropoutIsAFunctionOfTheForwardPass) {
  const auto without = task();
  config_.train.word_dropout = 0.5;
  const auto with = task();
  EXPECT_EQ(loss_of_batch(*with, 3), loss_of_batch(*with, 3));
  EXPECT_NE(loss_of_batch(*with, 3), loss_of_batch(*with, 4));
  EXPECT_EQ(loss_of_batch(*without, 3), loss_of_batch(*without, 4));
}

TEST_F(ClassificationTaskTest, APartCountsTheTokensOfItsWholeBatch) {
  config_.data.tokenizer_type = TokenizerKind::bpe;
  config_.data.vocab_size = 24;
  config_.train.subword_sampling = 0.5;
  const auto cuts = task();
  for (uint64_t forward = 0; forward < 4; ++forward)
    EXPECT_EQ(cuts->batch(0, forward, {.rank = 1, .ranks = 2}).tokens, cuts->batch(0, forward).tokens);
}

TEST_F(ClassificationTaskTest, WhatIsWrongIsSaidInOneLine) {
  const auto refusal = [&] { return message_of<Error>([&] { train(config_, folder_ / "run"); }); };
  write_file(folder_ / "valid.tsv", "red\ta red b\npurple\ta b\n");
  EXPECT_THAT(refusal(), HasSubstr("valid.tsv:2: the label is \"purple\", expected one of blue, green, red"));
  write_file(folder_ / "valid.tsv", "");
  EXPECT_THAT(refusal(), HasSubstr("valid.tsv"));
  write_file(folder_ / "valid.tsv", "no tab\n");
  EXPECT_THAT(refusal(), HasSubstr("valid.tsv:1"));
  write_keyword_text(folder_ / "valid.tsv", 5, 2);
  write_file(folder_ / "train.tsv", "red\ta\nred\tb\n");
  EXPECT_THAT(refusal(), HasSubstr("train.tsv: "));
  write_file(folder_ / "train.tsv", "");
  EXPECT_THAT(refusal(), HasSubstr("train.tsv"));
  write_keyword_text(folder_ / "train.tsv", 5, 2);
  config_.model.labels = {"red", "green"};
  EXPECT_THAT(refusal(), HasSubstr("expected one of red, green"));
}

TEST_F(ClassificationTaskTest, ResumeRefusesOtherTextAndLabels) {
  config_.train.steps = 2;
  train(config_, folder_ / "run");
  const auto refusal = [&] { return message_of<ConfigError>([&] { train(config_, folder_ / "run", true); }); };
  write_keyword_text(folder_ / "train.tsv", 299, 1);
  EXPECT_THAT(refusal(), HasSubstr("data.train_files: the text has 299 texts with "));
  config_.model.labels = {"red", "green", "blue"};
  EXPECT_THAT(refusal(), HasSubstr("model.labels = [\"red\",\"green\",\"blue\"]"));
}

}  // namespace
}  // namespace attune
