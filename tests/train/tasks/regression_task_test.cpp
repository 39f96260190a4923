// A classifier with label_scores = "none" learns numbers.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attune/inference/classifier.h"
#include "attune/io/config_file.h"
#include "attune/models/encoder_classifier.h"
#include "attune/train/prepare.h"
#include "tests/support/errors.h"
#include "tests/support/paths.h"
#include "tests/train/small_tasks.h"

namespace attune {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RegressionTaskTest : public ::testing::Test {
 protected:
  RegressionTaskTest() {
    write_texts(0);
    config_ = keyword_config(folder_);
    config_.model.label_scores = LabelScores::none;
    config_.model.pooling = Pooling::mean;
  }
  /// Six letters a line; the number is `mean` + 2 (how many are a - how many are b).
  void write_texts(double mean) const {
    for (const auto& [name, lines, seed] : {std::tuple{"train.tsv", 300, 1}, {"valid.tsv", 40, 2}}) {
      Random random(static_cast<uint64_t>(seed));
      std::string text;
      for (int i = 0; i < lines; ++i) {
        double number = mean;
        std::string words;
        for (int w = 0; w < 6; ++w) {
          const auto letter = static_cast<char>('a' + random.below(6));
          number += letter == 'a' ? 2 : letter == 'b' ? -2 : 0;
          words += std::string(1, letter) + " ";
        }
        text += fmt::format("{}\t{}\n", number, words);
      }
      write_file(folder_ / name, text);
    }
  }
  std::string refusal() const {
    return message_of<Error>([&] { train(config_, folder_ / "refused"); });
  }

  OneThread one_thread_;
  TemporaryFolder folder_;
  RunConfig config_;
};

TEST_F(RegressionTaskTest, LearnsNumbers) {
  config_.train.steps = 200;
  config_.train.batch_tokens = 256;
  config_.train.valid_every = 50;
  const TrainedRun run = train(config_, folder_ / "run");
  EXPECT_THAT(run.seen.start.model.labels, ElementsAre("score"));
  EXPECT_EQ(run.seen.start.corpus.size.examples, 300);
  EXPECT_EQ(run.seen.start.corpus.validation_examples, 40);
  const ValidationReport& last = run.seen.validations.back();
  EXPECT_FALSE(last.classification.has_value());
  ASSERT_TRUE(last.regression.has_value());
  EXPECT_GT(last.regression->pearson, 0.95);
  EXPECT_GT(last.regression->spearman, 0.9);
  EXPECT_LT(last.loss.loss, 1) << "the numbers' variance is near 8";
  EXPECT_NEAR(last.loss.loss, last.regression->mean_squared_error, 1e-9);
  EXPECT_EQ(last.loss.tokens, 40);
  double best = -1;
  for (const ValidationReport& report : run.seen.validations) best = std::max(best, report.regression->pearson);
  EXPECT_EQ(run.result.best_value, best) << "Pearson's correlation chooses";

  const TransformerConfig saved = read_model_config(folder_ / "run" / "model");
  EXPECT_TRUE(saved.is_regression());
  EXPECT_EQ(saved.labels, run.seen.start.model.labels);
  const Classifier model = Classifier::load(folder_ / "run" / "model");
  EXPECT_NEAR(model.classify("a a a c d e").labels.at(0).probability, 6, 1.5);
  EXPECT_NEAR(model.classify("b b b c d e").labels.at(0).probability, -6, 1.5);
  bool validated = false;
  for (const std::string& line : metrics_of(folder_ / "run")) {
    EXPECT_EQ(line.find("nll"), std::string::npos) << line;
    EXPECT_EQ(line.find("perplexity"), std::string::npos) << line;
    EXPECT_EQ(line.find("accuracy"), std::string::npos) << line;
    validated |= line.find("\"valid_pearson\":") != std::string::npos &&
                 line.find("\"valid_spearman\":") != std::string::npos &&
                 line.find("\"valid_loss\":") != std::string::npos;
  }
  EXPECT_TRUE(validated);
}

// The mean of the numbers is 500: steps of 3e-3 would not lead there.
TEST_F(RegressionTaskTest, NumbersFarFromZeroAreLearntToo) {
  write_texts(500);
  config_.train.steps = 200;
  config_.train.batch_tokens = 256;
  const TrainedRun run = train(config_, folder_ / "run");
  EXPECT_LT(run.seen.steps.front().loss, 50);
  const ValidationReport& last = run.seen.validations.back();
  EXPECT_GT(last.regression->pearson, 0.95);
  EXPECT_LT(last.regression->mean_squared_error, 1) << "of the numbers as they are";
}

TEST_F(RegressionTaskTest, ResumesBitForBit) {
  config_.train.word_dropout = 0.1;
  expect_resume_is_exact(config_, folder_);
}

TEST_F(RegressionTaskTest, APreparedTextTrainsAsTheTextDoes) {
  config_.train.steps = 12;
  config_.train.checkpoint_every = 12;
  train(config_, folder_ / "text");
  const PreparedIndex index = prepare_corpus(config_, folder_ / "prepared");
  EXPECT_EQ(index.kind, PreparedKind::numbers);
  EXPECT_THAT(index.labels, ElementsAre("score"));
  RunConfig prepared = config_;
  prepared.data.train_files.clear();
  prepared.data.prepared = (folder_ / "prepared").string();
  train(prepared, folder_ / "shard");
  EXPECT_EQ(tensors_of(checkpoint_file(folder_ / "shard", 12)), tensors_of(checkpoint_file(folder_ / "text", 12)));
  EXPECT_GT(prepare_corpus(config_, folder_ / "shards", {.shard_tokens = 200}).shards.size(), 3);
  prepared.data.prepared = (folder_ / "shards").string();
  expect_resume_is_exact(prepared, folder_);
  prepared.model.label_scores = LabelScores::softmax;
  EXPECT_THAT(message_of<ConfigError>([&] { train(prepared, folder_ / "labels"); }),
              HasSubstr("holds numbers, architecture = \"encoder_classifier\" reads labelled"));
}

TEST_F(RegressionTaskTest, ANewHeadStandsOnAnEncoderOfTheHub) {
  std::string pairs;
  for (int i = 0; i < 12; ++i)
    pairs += fmt::format("{{\"sentence1\": \"the cat {}\", \"sentence2\": \"a dog\", \"label\": {}}}\n", i, 0.4 * i);
  write_file(folder_ / "pairs.jsonl", pairs);
  const std::string file = (folder_ / "pairs.jsonl").string();
  const auto config_of = [&](const std::string& base, const std::vector<std::string>& more) {
    std::vector<std::string> set = {"train.initialize_from=" + (source_dir() / "tests/hub/models" / base).string(),
                                    "model.architecture=encoder_classifier",
                                    "data.train_files=" + file,
                                    "data.valid_files=" + file,
                                    "data.text_field=sentence1",
                                    "model.label_scores=none",
                                    "schedule.kind=constant",
                                    "train.steps=3"};
    set.insert(set.end(), more.begin(), more.end());
    return read_run_config("", set);
  };
  const std::string pair = "data.second_text_field=sentence2";
  EXPECT_THAT(message_of<ConfigError>([&] { config_of("bert-classifier", {pair}); }), HasSubstr("model.labels are "));
  const TrainedRun run = train(config_of("bert-classifier", {pair, "model.labels=[]"}), folder_ / "run");
  EXPECT_THAT(run.seen.messages.at(0), HasSubstr("new: head.weight, head.bias"));
  EXPECT_TRUE(run.seen.validations.back().regression.has_value());
  train(config_of("roberta-masked", {"model.labels=similarity", "lora.rank=2"}), folder_ / "lora");
  const TransformerConfig config = Classifier::load(folder_ / "lora" / "model").model().config();
  EXPECT_TRUE(config.is_regression());
  EXPECT_THAT(config.labels, ElementsAre("similarity"));
}

TEST_F(RegressionTaskTest, WhatIsWrongIsSaidInOneLine) {
  config_.train.steps = 1;
  write_file(folder_ / "valid.tsv", "3.5\ta b\ngood\ta b\n");
  EXPECT_THAT(refusal(), HasSubstr("valid.tsv:2: the label \"good\" is no finite number"));
  write_file(folder_ / "train.tsv", "inf\ta b\n");
  EXPECT_THAT(refusal(), HasSubstr("train.tsv:1: the label \"inf\" is no finite number"));
  config_.model.labels = {"similarity", "length"};
  EXPECT_THAT(refusal(), HasSubstr("model.labels are similarity, length: with model.label_scores = \"none\""));
  config_.model.labels = {"similarity"};
  config_.train.label_smoothing = 0.1;
  EXPECT_THAT(refusal(), HasSubstr("train.label_smoothing = 0.1: a regression"));
  config_.train.label_smoothing = 0;
  config_.train.best_metric = ValidationMetric::accuracy;
  EXPECT_THAT(refusal(), HasSubstr("train.best_metric = \"accuracy\": architecture = \"encoder_classifier\" with "
                                   "label_scores = \"none\" is not measured by it"));
  config_.train.best_metric = ValidationMetric::spearman;
  config_.model.label_scores = LabelScores::sigmoid;
  EXPECT_THAT(refusal(), HasSubstr("train.best_metric = \"spearman\""));
  config_.train.best_metric = ValidationMetric::automatic;
  EXPECT_THAT(refusal(), HasSubstr("model.label_scores = \"sigmoid\": training needs \"softmax\", or \"none\""));
}

}  // namespace
}  // namespace attune
