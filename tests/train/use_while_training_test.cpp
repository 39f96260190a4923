// A model that is trained and its copies that are used do not touch each other.

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "attune/autograd/graph.h"
#include "attune/base/parallel.h"
#include "attune/inference/translator.h"
#include "attune/text/whitespace_tokenizer.h"
#include "attune/train/batch_loss.h"
#include "attune/train/evaluate.h"
#include "attune/train/update.h"
#include "tests/inference/random_model.h"
#include "tests/support/gradient_check.h"

namespace attune {
namespace {

TransformerConfig config() {
  TransformerConfig c = small_config(MultiHeadLatent{}, NormPlacement::pre);
  c.dropout = c.attention_dropout = c.activation_dropout = 0.3;
  c.share_embeddings = c.share_projection = true;
  return c;
}

std::shared_ptr<const Tokenizer> tokenizer() {
  std::vector<std::string> words;
  for (int i = 0; i < 36; ++i) words.push_back("w" + std::to_string(i));
  return std::make_shared<WhitespaceTokenizer>(words);
}

std::vector<ParallelExample> examples() {
  return {{{5, 6, 7, 3}, {8, 9, 3}}, {{10, 3}, {11, 12, 13, 3}}};
}

struct Trained {
  std::vector<double> losses;
  std::vector<Tensor> parameters;
};

// `between` is called before each step.
Trained train(const std::shared_ptr<Transformer>& model, const std::function<void()>& between) {
  require_gradients(*model);
  Adam adam(trained_parameters(*model), {});
  const std::vector<TrainingBatch> batches = {training_batch(*model, pack(examples(), std::vector<int32_t>{0, 1}, 2))};
  Trained trained;
  for (int64_t step = 1; step <= 20; ++step) {
    between();
    trained.losses.push_back(
        update(*model, adam,
               {.batches = batches, .step = step, .learning_rate = 0.01, .first_forward = static_cast<uint64_t>(step)})
            .loss);
  }
  for (const NamedParameter& p : named_parameters(*model)) trained.parameters.push_back(p.tensor->detach());
  return trained;
}

void expect_same(const Trained& found, const Trained& expected) {
  EXPECT_EQ(found.losses, expected.losses);
  for (size_t i = 0; i < expected.parameters.size(); ++i)
    EXPECT_TRUE(same_bits(found.parameters[i], expected.parameters[i])) << i;
}

TEST(UseWhileTraining, ATranslatorInAnotherThreadAndTheTrainingOfItsModelAreAsAlone) {
  const ThreadScope one_thread(1);
  const Trained expected = train(random_model(config()), [] {});
  const std::shared_ptr<Transformer> model = random_model(config());
  const Translator translator(model, tokenizer(), tokenizer(), {.beam_size = 3, .max_length = 10});
  const std::vector<std::string> lines = {"w1 w2 w3", "w30", "w4 w4 w9 w9"};
  const auto scores = [&] {
    std::vector<double> found;
    for (const Translation& t : translator.translate(lines)) found.push_back(t.n_best.at(0).score);
    return found;
  };
  const std::vector<double> before = scores();
  std::atomic<bool> stop{false};
  std::jthread user([&] {
    const ThreadScope one(1);
    do EXPECT_EQ(scores(), before);
    while (!stop);
  });
  expect_same(train(model, [] {}), expected);
  stop = true;
}

TEST(UseWhileTraining, ValidationInBetweenChangesNothing) {
  const ThreadScope one_thread(1);
  const Trained expected = train(random_model(config()), [] {});
  const std::shared_ptr<Transformer> model = random_model(config());
  const Trained found = train(model, [&] {
    evaluate(*model, examples(), 2);
    Translator(model, tokenizer(), tokenizer(), {.max_length = 5}).translate(std::vector<std::string>{"w1 w2"});
  });
  expect_same(found, expected);
}

TEST(UseWhileTraining, ParametersThatAreNotTrainedStay) {
  struct FreezeEncoder final : Visitor {
    void on_parameter(const std::string& path, Parameter& p) override { p.trained = !path.starts_with("encoder."); }
  } freeze;
  const std::shared_ptr<Transformer> model = random_model(config()), before = random_model(config());
  model->visit(freeze);
  train(model, [] {});
  const std::vector<NamedParameter> old = named_parameters(*before), now = named_parameters(*model);
  for (size_t i = 0; i < old.size(); ++i) {
    const bool frozen = old[i].name.starts_with("encoder.");
    EXPECT_EQ(same_bits(*now[i].tensor, *old[i].tensor), frozen) << old[i].name;
    EXPECT_NE(requires_gradient(*now[i].tensor), frozen) << old[i].name;
  }
}

}  // namespace
}  // namespace attune
