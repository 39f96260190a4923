#include "attune/train/update.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "attune/autograd/graph.h"
#include "attune/nn/layer_stack.h"
#include "attune/tensor/device_error.h"
#include "attune/train/evaluate.h"
#include "tests/support/devices.h"
#include "tests/train/small_batches.h"
#include "tests/train/training_run.h"

namespace attune {
namespace {

TEST(Update, ManySmallBatchesAreOneLargeOne) {
  const OneThread one_thread;
  const auto whole = small_model(0), pieces = small_model(0);
  Adam whole_adam(named_parameters(*whole), {.epsilon = 1e-3});  // so that rounding is not blown up to the full rate
  Adam pieces_adam(named_parameters(*pieces), {.epsilon = 1e-3});
  const auto one = batches_of(*whole, {batch_of(0, 24)});
  const auto four = batches_of(*pieces, {batch_of(0, 3), batch_of(3, 11), batch_of(11, 12), batch_of(12, 24)});
  for (int64_t step = 1; step <= 5; ++step) {
    const UpdateResult a = update(*whole, whole_adam, {.batches = one, .step = step, .learning_rate = 0.01});
    const UpdateResult b = update(*pieces, pieces_adam, {.batches = four, .step = step, .learning_rate = 0.01});
    EXPECT_EQ(a.labels, b.labels);
    EXPECT_EQ(a.tokens, b.tokens);
    EXPECT_NEAR(a.loss, b.loss, 1e-5 * a.loss);
    EXPECT_NEAR(a.nll, b.nll, 1e-5 * a.nll);
    EXPECT_NEAR(a.gradient_norm, b.gradient_norm, 1e-4 * a.gradient_norm);
  }
  const auto a = named_parameters(*whole), b = named_parameters(*pieces);
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t k = 0; k < a[i].tensor->values<float>().size(); ++k)
      ASSERT_NEAR(a[i].tensor->values<float>()[k], b[i].tensor->values<float>()[k], 1e-5) << a[i].name << " " << k;
}

TEST(Update, SendsABatchWhileTheOneBeforeIsAtWork) {
  const auto model = small_model(0);
  Adam adam(named_parameters(*model), {});
  std::vector<TrainingBatch> batches = batches_of(*model, {batch_of(0, 8), batch_of(8, 16), batch_of(16, 24)});
  std::string calls;
  for (size_t i = 0; i < batches.size(); ++i) {
    batches[i].send = [&calls, i](const Device& device, double r_drop) {
      EXPECT_EQ(device, Device(Plain{}));
      EXPECT_EQ(r_drop, 0);
      calls += fmt::format("send {}, ", i);
    };
    batches[i].loss = [&calls, i, loss = batches[i].loss](const CrossEntropyOptions& options) {
      calls += fmt::format("loss {}, ", i);
      return loss(options);
    };
  }
  batches.push_back({.labels = 0, .tokens = 0, .loss = {}});  // of a rank without a part
  update(*model, adam,
         {.batches = std::span(batches).first(3), .device = Plain{}, .meanwhile = [&] { calls += "meanwhile"; }});
  EXPECT_EQ(calls, "loss 0, send 1, loss 1, send 2, loss 2, meanwhile");
  calls.clear();
  update(*model, adam,
         {.batches = std::span(batches).last(2), .device = Plain{}, .meanwhile = [&] { calls += "meanwhile"; }});
  EXPECT_EQ(calls, "loss 2, meanwhile");
}

TEST(Update, ABatchThatCannotBeSentIsUsedAllTheSame) {
  const auto expected = small_model(0), model = small_model(0);
  Adam expected_adam(named_parameters(*expected), {}), adam(named_parameters(*model), {});
  const std::vector<TrainingBatch> plain = batches_of(*expected, {batch_of(0, 8), batch_of(8, 16)});
  std::vector<TrainingBatch> batches = batches_of(*model, {batch_of(0, 8), batch_of(8, 16)});
  int sends = 0;
  batches[1].send = [&sends](const Device&, double) {
    ++sends;
    throw DeviceOutOfMemory("no memory for a copy");
  };
  const UpdateResult result = update(*model, adam, {.batches = batches, .device = Plain{}});
  EXPECT_EQ(sends, 1);
  EXPECT_EQ(result.loss, update(*expected, expected_adam, {.batches = plain, .device = Plain{}}).loss);
}

// A label that changes after the batch was sent is not seen by the next loss, but by the one after it.
TEST(Update, ABatchThatWasSentHasTheSameLoss) {
  for (const Device& device : devices_under_test()) {
    const auto model = small_model(0);
    move_parameters(*model, device);
    PackedBatch packed = batch_of(0, 24);
    int32_t& label = packed.labels[0];  // the batch keeps this memory
    const int32_t right = label, wrong = right == 5 ? 6 : 5;
    const TrainingBatch batch = training_batch(*model, std::move(packed));
    for (const double r_drop : {0.0, 2.0}) {
      const CrossEntropyOptions options{.r_drop = r_drop};
      const double expected = batch.loss(options).loss.item();
      for (int i = 0; i < 2; ++i) {  // the second time, other memory is sent
        batch.send(device, r_drop);
        label = wrong;
        EXPECT_EQ(batch.loss(options).loss.item(), expected);
        EXPECT_NE(batch.loss(options).loss.item(), expected);
        label = right;
      }
      EXPECT_EQ(batch.loss(options).loss.item(), expected);
    }
  }
}

TEST(Update, DropoutChangesFromForwardToForward) {
  const auto loss = [&](uint64_t forward) {
    const auto model = small_model(0.3);
    const auto one = batches_of(*model, {batch_of(0, 24)});
    Adam adam(named_parameters(*model), {});
    return update(*model, adam, {.batches = one, .learning_rate = 0.01, .first_forward = forward}).loss;
  };
  EXPECT_EQ(loss(5), loss(5));
  EXPECT_NE(loss(5), loss(6));
}

// Without dropout both passes are the same: what is left is the mean of two equal losses.
TEST(Update, RDropOfEqualPassesIsOnePass) {
  const OneThread one_thread;
  const auto plain = small_model(0), twofold = small_model(0);
  Adam plain_adam(named_parameters(*plain), {.epsilon = 1e-3}),
      twofold_adam(named_parameters(*twofold), {.epsilon = 1e-3});
  const auto batches = batches_of(*plain, {batch_of(0, 12), batch_of(12, 24)});
  const auto same_batches = batches_of(*twofold, {batch_of(0, 12), batch_of(12, 24)});
  for (int64_t step = 1; step <= 3; ++step) {
    const UpdateResult a = update(*plain, plain_adam, {.batches = batches, .step = step, .learning_rate = 0.01});
    const UpdateResult b =
        update(*twofold, twofold_adam, {.batches = same_batches, .step = step, .learning_rate = 0.01, .r_drop = 5});
    EXPECT_EQ(a.labels, b.labels);
    EXPECT_NEAR(a.loss, b.loss, 1e-5 * a.loss);
    EXPECT_NEAR(a.nll, b.nll, 1e-5 * a.nll);
    EXPECT_NEAR(a.gradient_norm, b.gradient_norm, 1e-4 * a.gradient_norm);
  }
}

TEST(Update, RDropBringsPredictionsTogether) {
  const auto model = small_model(0.3);
  const auto batches = batches_of(*model, {batch_of(0, 24)});
  const auto divergence = [&] {
    const DropoutScope dropout({.seed = 1, .step = 99});
    return batches[0].loss({.r_drop = 1}).sum_divergence.item();
  };
  const double before = divergence();
  EXPECT_GT(before, 0);
  Adam adam(named_parameters(*model), {});
  for (int64_t step = 1; step <= 20; ++step)
    update(*model, adam,
           {.batches = batches,
            .step = step,
            .learning_rate = 1e-3,
            .r_drop = 100,
            .first_forward = static_cast<uint64_t>(step)});
  EXPECT_LT(divergence(), before / 2);
}

// Without smoothing the cross entropy is the negative log likelihood.
TEST(Update, TheDivergenceIsNoPartOfTheLoss) {
  const auto model = small_model(0.3);
  const auto batches = batches_of(*model, {batch_of(0, 12)});
  const double sum = [&] {
    const DropoutScope dropout({.seed = 1, .step = 0});
    const auto labels = static_cast<double>(batches[0].labels);
    return labels * batches[0].loss({.scale = 1 / (2 * labels), .r_drop = 3}).loss.item();
  }();
  Adam adam(named_parameters(*model), {});
  const UpdateResult result = update(*model, adam, {.batches = batches, .r_drop = 3});
  EXPECT_NEAR(result.loss, result.nll, 1e-5 * result.nll);
  EXPECT_GT(result.r_drop_loss, 0.01);
  EXPECT_NEAR(result.loss + result.r_drop_loss, sum, 1e-5 * sum);
}

TEST(Update, TheLossOfAGuidedHeadIsNoPartOfTheLoss) {
  TransformerConfig config = small_model(0)->config();
  config.alignment_layer = 1;
  const auto model = build_transformer(config, 7);
  require_gradients(*model);
  std::vector<TrainingBatch> batches;
  for (const auto& [begin, end] : {std::pair{0, 12}, std::pair{12, 24}}) {
    PackedBatch batch = batch_of(begin, end);
    AlignmentLinks links{.offsets = {0}, .keys = std::vector<int32_t>(batch.labels.size(), 0)};
    for (size_t i = 1; i <= batch.labels.size(); ++i) links.offsets.push_back(static_cast<int32_t>(i));
    batches.push_back(training_batch(*model, std::move(batch), {.links = links, .weight = 0.5}));
  }
  double sum = 0;
  for (const TrainingBatch& batch : batches) sum += batch.loss({.scale = 1}).loss.item();
  Adam adam(named_parameters(*model), {});
  const UpdateResult result = update(*model, adam, {.batches = batches});
  EXPECT_NEAR(result.loss, result.nll, 1e-5 * result.nll);
  EXPECT_GT(result.guided_loss, 0.1);
  EXPECT_NEAR(result.loss + result.guided_loss, sum, 1e-5 * sum);
}

// The parameters after some updates, with their names.
std::vector<std::pair<std::string, std::vector<float>>> after_layer_dropout(double probability, bool checkpoints) {
  const auto model = small_model(0.1);
  set_activation_checkpointing(*model, checkpoints);
  set_layer_dropout(*model, probability);
  const auto batches = batches_of(*model, {batch_of(0, 12), batch_of(12, 24)});
  Adam adam(named_parameters(*model), {});
  for (int64_t step = 1; step <= 4; ++step)
    update(*model, adam,
           {.batches = batches, .step = step, .learning_rate = 0.01, .first_forward = static_cast<uint64_t>(2 * step)});
  std::vector<std::pair<std::string, std::vector<float>>> values;
  for (const auto& [name, parameter] : named_parameters(*model)) {
    const auto numbers = parameter->values<float>();
    values.emplace_back(name, std::vector<float>(numbers.begin(), numbers.end()));
  }
  return values;
}

TEST(Update, LayerDropoutLeavesLayersOut) {
  const auto whole = after_layer_dropout(0, false), none = after_layer_dropout(0.9999, false);
  const auto model = small_model(0.1);
  const std::vector<NamedParameter> before = named_parameters(*model);
  for (size_t i = 0; i < none.size(); ++i) {
    const auto numbers = before[i].tensor->values<float>();
    const std::string& name = none[i].first;
    // A decoder without layers does not look at the source.
    const bool is_read = name.find("layers.") == std::string::npos && !name.starts_with("encoder.") &&
                         !name.starts_with("source_embedding.");
    EXPECT_EQ(!std::ranges::equal(none[i].second, numbers), is_read) << name;
  }
  EXPECT_NE(whole, after_layer_dropout(0.4, false));
  EXPECT_EQ(after_layer_dropout(0.4, false), after_layer_dropout(0.4, true)) << "with activation checkpoints";
}

// Of each expert.
constexpr int64_t kExpertWidth = 16;

// The imbalance of the last of many updates on the same batches.
double imbalance_after_training(const Experts& experts) {
  const auto model = small_model(0, kExpertWidth, experts);
  Adam adam(trained_parameters(*model), {});
  const auto batches = batches_of(*model, {batch_of(0, 12), batch_of(12, 24)});
  double sum = 0;
  for (int64_t step = 1; step <= 60; ++step) {
    const UpdateResult result = update(*model, adam, {.batches = batches, .step = step, .learning_rate = 0.002});
    if (step > 50) sum += result.expert_imbalance / 10;
  }
  return sum;
}

TEST(Update, ExpertsGetMoreEvenLoadByALossOrByABias) {
  const double neither = imbalance_after_training({.experts = 6, .balance_loss = 0});
  EXPECT_GT(neither, 1);
  EXPECT_LT(imbalance_after_training({.experts = 6, .balance_loss = 1}), neither);
  EXPECT_LT(imbalance_after_training({.experts = 6, .choice_bias = true, .balance_loss = 0, .bias_rate = 0.01}),
            neither);
}

TEST(Update, BiasesAreMovedByTheRateAndTrainedByNothingElse) {
  const auto model = small_model(0, kExpertWidth, Experts{.experts = 6, .choice_bias = true, .bias_rate = 0.25});
  Adam adam(trained_parameters(*model), {.weight_decay = 0.1});
  const auto batches = batches_of(*model, {batch_of(0, 12), batch_of(12, 24)});
  const UpdateResult result = update(*model, adam, {.batches = batches, .learning_rate = 0.01});
  EXPECT_GT(result.expert_imbalance, 1);
  size_t biases = 0;
  for (const NamedParameter& p : named_parameters(*model)) {
    if (!p.name.ends_with(".choice_bias")) continue;
    ++biases;
    EXPECT_FALSE(gradient(*p.tensor).defined());
    for (const float value : p.tensor->values<float>())
      EXPECT_TRUE(value == 0.25f || value == -0.25f || value == 0) << p.name << ": " << value;
  }
  EXPECT_EQ(biases, 4u);
}

TEST(Update, AsksTheSystemForNothingInSteadyState) {
  const OneThread one_thread;
  const auto model = small_model(0.1);
  Adam adam(named_parameters(*model), {.clip_norm = 1}, 0.99);
  const std::vector<TrainingBatch> shapes[] = {batches_of(*model, {batch_of(0, 12), batch_of(12, 24)}),
                                               batches_of(*model, {batch_of(3, 20)})};
  int64_t after_warm_up = 0;
  for (int64_t step = 1; step <= 12; ++step) {
    for (const auto& batches : shapes)
      update(
          *model, adam,
          {.batches = batches, .step = step, .learning_rate = 1e-3, .first_forward = 4 * static_cast<uint64_t>(step)});
    if (step == 6) after_warm_up = allocator_statistics().system_allocations;  // blocks of tests before are cut first
  }
  EXPECT_GT(after_warm_up, 0);
  EXPECT_EQ(allocator_statistics().system_allocations, after_warm_up);
}

TEST(Evaluate, IsTheMeanOverAllTokensHoweverTheyAreBatched) {
  const auto model = small_model(0.5);
  const auto all = examples();
  const CorpusLoss small = [&] {
    const DropoutScope dropout({.seed = 1, .step = 1});  // evaluate() turns it off
    return evaluate(*model, all, 2, {.batch_tokens = 20, .label_smoothing = 0.1});
  }();
  const CorpusLoss large = evaluate(*model, all, 2, {.batch_tokens = 10000, .label_smoothing = 0.1});
  int64_t tokens = 0;
  for (const ParallelExample& e : all) tokens += static_cast<int64_t>(e.target.size());
  EXPECT_EQ(small.tokens, tokens);
  EXPECT_EQ(large.tokens, tokens);
  EXPECT_NEAR(small.loss, large.loss, 1e-5);
  EXPECT_NEAR(small.nll, large.nll, 1e-5);
  EXPECT_DOUBLE_EQ(small.accuracy, large.accuracy);
  EXPECT_DOUBLE_EQ(large.perplexity, std::exp(large.nll));

  const ExecutionScope plain([](Execution& e) {
    e.recording = false;
    e.dropout.reset();
  });
  const CrossEntropy direct = batch_loss(*model, batch_of(0, 24), {.label_smoothing = 0.1});
  EXPECT_NEAR(large.loss, direct.loss.item(), 1e-6);
  EXPECT_NEAR(large.nll, direct.sum_negative_log_likelihood.item() / static_cast<double>(tokens), 1e-9);
  EXPECT_DOUBLE_EQ(large.accuracy, direct.correct.item() / static_cast<double>(tokens));
  EXPECT_THROW(evaluate(*model, {}, 2), DataError);
}

TEST(Update, Bfloat16ProductsFollowTheParameters) {
  const OneThread one_thread;
  const auto exact = small_model(0.1), model = small_model(0.1);
  Adam exact_adam(named_parameters(*exact), {}), adam(named_parameters(*model), {});
  const auto exact_batches = batches_of(*exact, {batch_of(0, 24)});
  const auto batches = batches_of(*model, {batch_of(0, 12), batch_of(12, 24)});
  double first = 0, last = 0;
  for (int64_t step = 1; step <= 30; ++step) {
    const UpdateResult a = update(*exact, exact_adam, {.batches = exact_batches, .step = step, .learning_rate = 3e-3});
    const UpdateResult b =
        update(*model, adam,
               {.batches = batches, .step = step, .learning_rate = 3e-3, .precision = ProductPrecision::bfloat16});
    EXPECT_FALSE(bfloat16_products());
    if (step == 1) {
      EXPECT_NE(a.gradient_norm, b.gradient_norm);
      EXPECT_NEAR(a.gradient_norm, b.gradient_norm, 0.05 * a.gradient_norm);
      first = b.loss;
    }
    last = b.loss;
  }
  EXPECT_LT(last, 0.8 * first);  // copies of the first parameters would learn nothing
}

}  // namespace
}  // namespace attune
