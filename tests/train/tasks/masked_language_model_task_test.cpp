#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attune/io/config_file.h"
#include "attune/models/encoder_classifier.h"
#include "attune/train/tasks/training_task.h"
#include "tests/support/errors.h"
#include "tests/train/small_tasks.h"

namespace attune {
namespace {

using ::testing::HasSubstr;

class MaskedLanguageModelTaskTest : public ::testing::Test {
 protected:
  MaskedLanguageModelTaskTest() {
    write_pairs_text(folder_ / "train.txt", 400, 1);
    write_pairs_text(folder_ / "valid.txt", 80, 2);
    config_ = pairs_config(folder_);
  }
  OneThread one_thread_;
  TemporaryFolder folder_;
  RunConfig config_;
};

TEST_F(MaskedLanguageModelTaskTest, FillsIn) {
  config_.model.dropout = config_.model.attention_dropout = config_.model.activation_dropout = 0;
  config_.train.steps = 300;
  config_.train.batch_tokens = 512;
  config_.train.valid_every = 150;
  const TrainedRun run = train(config_, folder_ / "run");
  EXPECT_EQ(run.seen.start.corpus.size.examples, 400);
  EXPECT_EQ(run.seen.start.corpus.validation_examples, 80);
  ASSERT_EQ(run.seen.validations.size(), 2);
  EXPECT_EQ(run.seen.validations[0].loss.tokens, run.seen.validations[1].loss.tokens);
  EXPECT_GT(run.seen.validations[0].loss.nll, run.seen.validations[1].loss.nll);
  EXPECT_GT(run.seen.validations.back().loss.accuracy, 0.7) << "a twelfth by chance";
  EXPECT_EQ(read_model_config(folder_ / "run" / "model").architecture, Architecture::encoder_masked_lm);
}

TEST_F(MaskedLanguageModelTaskTest, ResumesBitForBit) {
  expect_resume_is_exact(config_, folder_);
}

TEST_F(MaskedLanguageModelTaskTest, LongTextIsCutInParts) {
  config_.data.text_unit = TextUnit::stream;
  config_.data.max_tokens = 10;
  config_.train.steps = 1;
  config_.train.valid_sentences = 20;
  const TrainedRun run = train(config_, folder_ / "run");
  EXPECT_EQ(run.seen.start.corpus.size.examples, 1);
  EXPECT_EQ(run.seen.start.corpus.validation_examples, 20);
  EXPECT_GE(run.seen.start.batches, run.seen.start.corpus.size.tokens / 128);
}

TEST_F(MaskedLanguageModelTaskTest, EveryForwardPassHidesOtherPlaces) {
  std::filesystem::create_directories(folder_ / "run");
  const auto task = make_training_task(config_, folder_ / "run", false);
  task->begin_epoch(0);
  const auto loss = [&](uint64_t forward) { return task->batch(0, forward).loss({}).loss.item(); };
  EXPECT_EQ(loss(3), loss(3));
  EXPECT_NE(loss(3), loss(4));
}

TEST_F(MaskedLanguageModelTaskTest, AClassifierBeginsWithItsWeights) {
  config_.train.steps = 2;
  train(config_, folder_ / "mlm");
  write_file(folder_ / "labelled.tsv", "lower\ta b c\nupper\tA B C\n");
  RunConfig tuning = small_config(Architecture::encoder_classifier);
  tuning.data.train_files = {(folder_ / "labelled.tsv").string()};
  tuning.train.initialize_from = (folder_ / "mlm" / "model").string();
  tuning.train.steps = 1;
  tuning.schedule.learning_rate = 1e-20;  // leaves every weight as it is
  const TrainedRun run = train(tuning, folder_ / "tuned");
  EXPECT_EQ(run.seen.start.model.vocab, 4 + 12) << "the tokenizer comes along";
  const auto before = tensors_of(folder_ / "mlm" / "model" / "model.safetensors");
  const auto after = tensors_of(folder_ / "tuned" / "model" / "model.safetensors");
  int64_t same = 0;
  for (const auto& [name, bytes] : after) {
    if (!name.starts_with("head.")) {
      EXPECT_EQ(bytes, before.at(name)) << name;
      ++same;
    }
  }
  ASSERT_EQ(run.seen.messages.size(), 1);
  EXPECT_EQ(run.seen.messages[0], fmt::format("{} of {} parameters from {}; new: head.weight, head.bias", same,
                                              same + 2, tuning.train.initialize_from));
  EXPECT_TRUE(train(tuning, folder_ / "tuned", true).seen.messages.empty()) << "a resumed run has its own weights";

  tuning.model.d_model = 16;
  EXPECT_THAT(message_of<ConfigError>([&] { train(tuning, folder_ / "other"); }),
              HasSubstr("model.d_model = 16: train.initialize_from = "));
  tuning.train.initialize_from = (folder_ / "nowhere").string();
  EXPECT_THAT(message_of<FileError>([&] { train(tuning, folder_ / "other"); }), HasSubstr("nowhere"));
}

TEST_F(MaskedLanguageModelTaskTest, WhatIsWrongIsSaidInOneLine) {
  const auto refusal = [&] { return message_of<Error>([&] { train(config_, folder_ / "run"); }); };
  write_file(folder_ / "valid.txt", "? ! ?\n");
  EXPECT_THAT(refusal(), HasSubstr("valid.txt: has no token that could be hidden for validation"));
  write_file(folder_ / "valid.txt", "");
  EXPECT_THAT(refusal(), HasSubstr("valid.txt"));
}

}  // namespace
}  // namespace attune
