#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "attune/io/model_folder.h"
#include "tests/support/errors.h"
#include "tests/train/small_tasks.h"

namespace attune {
namespace {

using ::testing::HasSubstr;

class LanguageModelTaskTest : public ::testing::Test {
 protected:
  OneThread one_thread_;
  TemporaryFolder folder_;
  RunConfig config_ = rhyme_config(folder_);
};

TEST_F(LanguageModelTaskTest, LearnsATextByHeart) {
  config_.model.dropout = config_.model.attention_dropout = config_.model.activation_dropout = 0;
  config_.model.layers = 2;
  config_.train.steps = 200;
  config_.train.batch_tokens = 512;
  config_.train.valid_every = 100;
  const TrainedRun run = train(config_, folder_ / "run");
  const auto characters = static_cast<int64_t>(30 * std::string(kRhyme).size());
  EXPECT_EQ(run.seen.start.corpus.size.tokens, static_cast<int64_t>(std::floor(static_cast<double>(characters) * 0.9)));
  ASSERT_EQ(run.seen.validations.size(), 2);
  const ValidationReport& last = run.seen.validations.back();
  EXPECT_LT(last.loss.perplexity, 1.6);
  EXPECT_GT(last.loss.accuracy, 0.9);
  EXPECT_EQ(last.loss.tokens, characters - run.seen.start.corpus.size.tokens - 1);
  ASSERT_TRUE(last.bits_per_character.has_value());
  EXPECT_NEAR(*last.bits_per_character, std::log2(last.loss.perplexity), 1e-12);
  EXPECT_FALSE(last.bits_per_byte.has_value());
  EXPECT_EQ(run.result.best_value, last.loss.loss);
  EXPECT_GT(run.seen.steps.front().nll, 2);
  EXPECT_THAT(metrics_of(folder_ / "run").back(), HasSubstr("\"valid_bits_per_character\":"));

  const LanguageModelFolder files = load_language_model_folder(folder_ / "run" / "model");
  EXPECT_EQ(files.text_unit, TextUnit::stream);
  EXPECT_EQ(files.tokenizer->decode(files.tokenizer->encode("The dog\n")), "The dog\n");
}

TEST_F(LanguageModelTaskTest, ResumesBitForBit) {
  config_.train.moving_average = 0.9;
  config_.train.accumulate = 2;
  config_.train.word_dropout = 0.1;
  expect_resume_is_exact(config_, folder_);
}

TEST_F(LanguageModelTaskTest, MeasuresWithAStride) {
  config_.train.steps = 1;
  config_.train.valid_every = 1;
  const TrainedRun plain = train(config_, folder_ / "plain");
  config_.train.valid_stride = 4;
  const TrainedRun sliding = train(config_, folder_ / "sliding");
  EXPECT_EQ(plain.seen.validations[0].loss.tokens, sliding.seen.validations[0].loss.tokens);
  EXPECT_NE(plain.seen.validations[0].loss.nll, sliding.seen.validations[0].loss.nll);
}

TEST_F(LanguageModelTaskTest, LinesAreDocuments) {
  config_.data.text_unit = TextUnit::line;
  config_.data.tokenizer_type = TokenizerKind::bytes;
  config_.train.steps = 1;
  const TrainedRun run = train(config_, folder_ / "run");
  EXPECT_EQ(run.seen.start.corpus.size.examples, 81);
  EXPECT_EQ(run.seen.start.corpus.validation_examples, 9);
  EXPECT_EQ(run.seen.start.model.vocab, 260);
  EXPECT_TRUE(run.seen.validations.at(0).bits_per_byte.has_value());
}

TEST_F(LanguageModelTaskTest, TheTokenizerOfPromptsAndAnswersKnowsNoJson) {
  write_file(folder_ / "answers.jsonl", R"({"prompt": "caf\u00e9?", "answer": "oui"})"
                                        "\n");
  config_.data.train_files = {(folder_ / "answers.jsonl").string()};
  config_.data.valid_fraction = 0;
  config_.data.text_unit = TextUnit::answer;
  config_.train.steps = 1;
  train(config_, folder_ / "run");
  const LanguageModelFolder files = load_language_model_folder(folder_ / "run" / "model");
  EXPECT_EQ(files.tokenizer->decode(files.tokenizer->encode("café?oui")), "café?oui");
  EXPECT_EQ(files.tokenizer->encode("{"), std::vector<int32_t>{files.tokenizer->unk_id()});
}

TEST_F(LanguageModelTaskTest, WhatIsWrongIsSaidInOneLine) {
  const auto refusal = [&] { return message_of<Error>([&] { train(config_, folder_ / "run"); }); };
  config_.data.valid_fraction = 1e-9;
  EXPECT_THAT(refusal(), HasSubstr("rhyme.txt"));
  config_.data.valid_fraction = 0;
  write_file(folder_ / "one.txt", "T");
  config_.data.valid_files = {(folder_ / "one.txt").string()};
  EXPECT_EQ(refusal(), "the validation text has 1 tokens in 1 documents: none has a token before it");
  write_file(folder_ / "one.txt", "");
  EXPECT_THAT(refusal(), HasSubstr("one.txt"));
  config_.data.train_files = {(folder_ / "one.txt").string()};
  EXPECT_THAT(refusal(), HasSubstr("one.txt"));
  config_.data.train_files = {(folder_ / "none.txt").string()};
  EXPECT_THAT(refusal(), HasSubstr("none.txt"));
  config_.model.vocab = 7;
  config_.data.train_files = config_.data.valid_files = {(folder_ / "rhyme.txt").string()};
  EXPECT_THAT(refusal(), HasSubstr("model.vocab = 7: the tokenizer has "));
}

}  // namespace
}  // namespace attune
