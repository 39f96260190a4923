// Runs with adapters, frozen parameters and rates by layer.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "attune/hub/adapter_folder.h"
#include "attune/inference/classifier.h"
#include "attune/models/encoder_classifier.h"
#include "attune/nn/adapters.h"
#include "attune/train/trained_parts.h"
#include "tests/support/errors.h"
#include "tests/train/small_tasks.h"

namespace attune {
namespace {

using ::testing::HasSubstr;

class LoraTest : public ::testing::Test {
 protected:
  LoraTest() {
    write_keyword_text(folder_ / "train.tsv", 120, 1);
    write_keyword_text(folder_ / "valid.tsv", 20, 2);
    config_ = keyword_config(folder_);
    config_.train.steps = 3;
    train(config_, folder_ / "base");
    config_.train.initialize_from = (folder_ / "base").string();
    config_.train.steps = 20;
  }
  std::map<std::string, std::string> base() const {
    return tensors_of(folder_ / "base" / "model" / "model.safetensors");
  }
  std::map<std::string, std::string> model(const std::string& run) const {
    return tensors_of(folder_ / run / "model" / "model.safetensors");
  }

  OneThread one_thread_;
  TemporaryFolder folder_;
  RunConfig config_;
};

TEST_F(LoraTest, TrainsAdaptersAlone) {
  config_.lora = {.rank = 2, .dropout = 0.1, .targets = {"w_q", "linear_1"}};
  train(config_, folder_ / "run");
  const auto checkpoint = tensors_of(checkpoint_file(folder_ / "run", 20));
  for (const auto& [name, bytes] : checkpoint) EXPECT_THAT(name, HasSubstr(".lora.")) << "the base is not stored";
  EXPECT_EQ(checkpoint.size(), 2 * 2 * 3) << "A and B of two projections, with two moments each";
  const auto before = base(), after = model("run");
  ASSERT_EQ(after.size(), before.size());
  for (const auto& [name, bytes] : after) {
    const bool adapted = name.ends_with("w_q.weight") || name.ends_with("linear_1.weight");
    EXPECT_EQ(bytes != before.at(name), adapted) << name;
  }
}

// The model knows the keyword, and the labels are then exchanged: adapters alone learn the exchange.
TEST_F(LoraTest, AdaptersAloneLearn) {
  const auto exchanged = [&](const char* name) {
    const std::map<std::string, std::string> other = {{"red", "green"}, {"green", "blue"}, {"blue", "red"}};
    std::istringstream lines(read_file(folder_ / name));
    std::string text;
    for (std::string label, words; std::getline(lines, label, '\t') && std::getline(lines, words);)
      text += other.at(label) + "\t" + words + "\n";
    write_file(folder_ / name, text);
  };
  config_.train.steps = 100;
  config_.train.initialize_from.clear();
  const auto accuracy = [](const TrainedRun& run) { return run.seen.validations.back().classification->accuracy; };
  ASSERT_GT(accuracy(train(config_, folder_ / "taught")), 0.9);
  exchanged("train.tsv");
  exchanged("valid.tsv");
  config_.train.initialize_from = (folder_ / "taught").string();
  config_.schedule.learning_rate = 1e-2;
  config_.lora = {.rank = 4, .targets = {"all"}};
  const TrainedRun run = train(config_, folder_ / "run");
  EXPECT_GT(run.seen.steps.front().loss, 1.5) << "what the model knew is wrong now";
  EXPECT_GT(accuracy(run), 0.9);
}

TEST_F(LoraTest, ResumesBitForBit) {
  config_.lora = {.rank = 2, .dropout = 0.1, .targets = {"all"}};
  expect_resume_is_exact(config_, folder_);
}

TEST_F(LoraTest, TheFolderOfTheAdapterIsTheModelWithIt) {
  config_.lora = {.rank = 2, .rank_stabilized = true};
  train(config_, folder_ / "run");
  const Classifier merged = Classifier::load(folder_ / "run" / "model");
  const Classifier adapter = Classifier::load(folder_ / "run" / "model" / kAdapterFolder);
  const std::vector<Encoding> text = {merged.encode("a b red c")};
  const std::vector<float> expected = merged.logits(text).at(0), found = adapter.logits(text).at(0);
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-5);
  EXPECT_NE(found, Classifier::load(folder_ / "base" / "model").logits(text).at(0));
}

TEST_F(LoraTest, ANewHeadIsTrainedBesideTheAdapters) {
  write_file(folder_ / "train.tsv", "yes\ta red b\nno\tc d\nyes\tred\nno\te f g\n");
  config_.data.valid_files = {};
  config_.model.labels = {"no", "yes"};
  config_.lora = {.rank = 2};
  train(config_, folder_ / "run");
  const auto checkpoint = tensors_of(checkpoint_file(folder_ / "run", 20));
  EXPECT_TRUE(checkpoint.contains("model.head.weight"));
  EXPECT_FALSE(checkpoint.contains("model.embedding.weight"));
}

TEST_F(LoraTest, FrozenParametersStay) {
  config_.train.freeze = {"embedding*", "*.bias"};
  train(config_, folder_ / "run");
  const auto before = base(), after = model("run");
  for (const auto& [name, bytes] : after)
    EXPECT_EQ(bytes == before.at(name), name.starts_with("embedding") || name.ends_with(".bias")) << name;
  config_.train.freeze = {"embeding*"};
  EXPECT_THAT(message_of<ConfigError>([&] { train(config_, folder_ / "other"); }),
              HasSubstr("train.freeze: \"embeding*\" names no parameter"));
  config_.train.freeze = {"*"};
  EXPECT_THAT(message_of<ConfigError>([&] { train(config_, folder_ / "another"); }),
              HasSubstr("no parameter to be trained"));
}

TEST_F(LoraTest, RatesFallWithTheDepth) {
  config_.model.layers = 2;
  config_.train.layer_learning_rate_decay = 0.5;
  Tensor unused;
  const std::vector<NamedParameter> parameters = {{"head.weight", &unused},
                                                  {"encoder.norm.weight", &unused},
                                                  {"encoder.layers.1.residual_1.norm.weight", &unused},
                                                  {"encoder.layers.0.self_attention.w_q.lora.a", &unused},
                                                  {"embedding.weight", &unused}};
  EXPECT_EQ(learning_rate_factors(config_, parameters), (std::vector<double>{1, 0.5, 0.5, 0.25, 0.125}));
  config_.train.layer_learning_rate_decay = 1;
  EXPECT_TRUE(learning_rate_factors(config_, parameters).empty());
}

TEST_F(LoraTest, WhatDoesNotGoTogetherIsSaid) {
  const auto refusal = [&] { return message_of<ConfigError>([&] { config_.validate(); }); };
  config_.lora = {.rank = 2};
  config_.train.average_checkpoints = 2;
  EXPECT_THAT(refusal(), HasSubstr("train.average_checkpoints = 2"));
  config_.train.average_checkpoints = 0;
  config_.train.initialize_from.clear();
  EXPECT_THAT(refusal(), HasSubstr("lora.rank = 2: adapters need a model in train.initialize_from"));
}

}  // namespace
}  // namespace attune
