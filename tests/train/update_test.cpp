#include "attune/train/update.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "attune/autograd/graph.h"
#include "attune/nn/layer_stack.h"
#include "attune/ops/linear.h"
#include "attune/tensor/device_error.h"
#include "attune/tensor/host_view.h"
#include "attune/train/batch_loss.h"
#include "attune/train/evaluate.h"
#include "tests/support/devices.h"
#include "tests/support/errors.h"
#include "tests/support/gradient_check.h"
#include "tests/train/reverse_task.h"

namespace attune {
namespace {

std::vector<ParallelExample> examples() {
  std::vector<ParallelExample> examples;
  Random random(3);
  for (int i = 0; i < 24; ++i) {
    ParallelExample e;
    for (uint64_t n = 2 + random.below(6); n > 0; --n) e.source.push_back(static_cast<int32_t>(4 + random.below(16)));
    for (uint64_t n = 2 + random.below(6); n > 0; --n) e.target.push_back(static_cast<int32_t>(4 + random.below(16)));
    e.source.push_back(3);
    e.target.push_back(3);
    examples.push_back(e);
  }
  return examples;
}

PackedBatch batch_of(int32_t begin, int32_t end) {
  std::vector<int32_t> indices;
  for (int32_t i = begin; i < end; ++i) indices.push_back(i);
  return pack(examples(), indices, 2);
}

std::vector<TrainingBatch> batches_of(const Transformer& model, std::vector<PackedBatch> packed) {
  std::vector<TrainingBatch> batches;
  for (PackedBatch& batch : packed) batches.push_back(training_batch(model, std::move(batch)));
  return batches;
}

std::unique_ptr<Transformer> small_model(double dropout) {
  auto model = build_transformer({.source_vocab = 20,
                                  .target_vocab = 20,
                                  .d_model = 32,
                                  .heads = 4,
                                  .layers = 2,
                                  .d_ff = 64,
                                  .dropout = dropout,
                                  .attention_dropout = dropout,
                                  .activation_dropout = dropout},
                                 7);
  require_gradients(*model);
  return model;
}

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
  batches.push_back(
      {.labels = 0, .tokens = 0, .loss = {}});  // of a rank without a part: at the end no batch is at work
  update(*model, adam,
         {.batches = std::span(batches).first(3), .device = Plain{}, .meanwhile = [&] { calls += "meanwhile"; }});
  EXPECT_EQ(calls, "loss 0, send 1, loss 1, send 2, loss 2, meanwhile");
  calls.clear();
  update(*model, adam, {.batches = std::span(batches).last(2), .device = Plain{}});
  EXPECT_EQ(calls, "loss 2, ");
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

std::unique_ptr<Transformer> model_of_experts(const Experts& experts) {
  auto model = build_transformer({.source_vocab = 20,
                                  .target_vocab = 20,
                                  .d_model = 32,
                                  .heads = 4,
                                  .layers = 2,
                                  .d_ff = 16,
                                  .dropout = 0,
                                  .attention_dropout = 0,
                                  .activation_dropout = 0,
                                  .feed_forward = experts},
                                 7);
  require_gradients(*model);
  return model;
}

// The imbalance of the last of many updates on the same batches.
double imbalance_after_training(const Experts& experts) {
  const auto model = model_of_experts(experts);
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
  const auto model = model_of_experts({.experts = 6, .choice_bias = true, .bias_rate = 0.25});
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

class UpdateOfBadNumbers : public ::testing::Test {
 protected:
  const NamedParameter& parameter(const std::string& name) const {
    return *std::ranges::find(parameters_, name, &NamedParameter::name);
  }
  // The message of step 12, which begins with batch 40 of epoch 3.
  std::string message_of_update() {
    Adam adam(parameters_, {});
    const auto batches = batches_of(*model_, {batch_of(0, 8), batch_of(8, 16)});
    return message_of<NumericError>([&] {
      update(*model_, adam, {.batches = batches, .step = 12, .epoch = 3, .first_batch = 40, .learning_rate = 0.01});
    });
  }
  std::unique_ptr<Transformer> model_ = small_model(0);
  std::vector<NamedParameter> parameters_ = named_parameters(*model_);
};

TEST_F(UpdateOfBadNumbers, NamesTheFirstBadParameterAndChangesNothing) {
  parameter("projection.weight").tensor->data<float>()[5] = std::numeric_limits<float>::quiet_NaN();
  const Tensor good = parameters_[0].tensor->clone();
  EXPECT_EQ(message_of_update(),
            "step 12, epoch 3, batch 40: the loss is nan; parameter projection.weight is not finite at element 5");
  EXPECT_TRUE(same_bits(*parameters_[0].tensor, good));
  for (const NamedParameter& p : parameters_) EXPECT_FALSE(gradient(*p.tensor).defined()) << p.name;
}

// The gradients are finite: the step is not made because of the losses alone.
TEST(Update, NamesTheFirstBadLossAndLeavesNoTrace) {
  for (const Device& device : all_devices()) {
    SCOPED_TRACE(device.text());
    const auto model = small_model(0), undisturbed = small_model(0);
    for (Transformer* m : {model.get(), undisturbed.get()}) {
      move_parameters(*m, device);
      require_gradients(*m);
    }
    Adam adam(named_parameters(*model), {.clip_norm = 0.1}, 0.9);
    Adam undisturbed_adam(named_parameters(*undisturbed), {.clip_norm = 0.1}, 0.9);
    const std::vector<PackedBatch> packed = {batch_of(0, 8), batch_of(8, 16), batch_of(16, 24)};
    std::vector<TrainingBatch> batches = batches_of(*model, packed);
    const auto spoil = [](TrainingBatch& batch, double value) {
      batch.loss = [value, loss = batch.loss](const CrossEntropyOptions& options) {
        CrossEntropy bad = loss(options);
        bad.loss.fill(value);
        return bad;
      };
    };
    spoil(batches[1], std::numeric_limits<double>::infinity());
    spoil(batches[2], std::numeric_limits<double>::quiet_NaN());
    const UpdateInput bad{
        .batches = batches, .step = 12, .epoch = 3, .first_batch = 40, .learning_rate = 0.01, .device = device};
    EXPECT_EQ(message_of<NumericError>([&] { update(*model, adam, bad); }),
              "step 12, epoch 3, batch 41: the loss is inf; all parameters and gradients are finite");
    EXPECT_EQ(adam.steps(), 0);

    const auto good = batches_of(*model, packed), same = batches_of(*undisturbed, packed);
    update(*model, adam, {.batches = good, .learning_rate = 0.01, .device = device});
    update(*undisturbed, undisturbed_adam, {.batches = same, .learning_rate = 0.01, .device = device});
    EXPECT_EQ(adam.steps(), 1);
    for (size_t i = 0; i < adam.states().size(); ++i) {
      const AdamState &a = adam.states()[i], &b = undisturbed_adam.states()[i];
      EXPECT_EQ(host_values<float>(a.m), host_values<float>(b.m)) << a.name;
      EXPECT_EQ(host_values<float>(a.average), host_values<float>(b.average)) << a.name;
    }
  }
}

TEST_F(UpdateOfBadNumbers, NamesTheFirstBadGradient) {
  const Tensor& bias = *parameter("projection.bias").tensor;
  set_gradient(bias, Tensor::full(bias.shape(), std::numeric_limits<double>::infinity()));
  EXPECT_EQ(message_of_update(),
            "step 12, epoch 3, batches 40 to 41: the gradient's norm is inf; the gradient of projection.bias is not "
            "finite at element 0");
}

// oneDNN's ReLU makes 0 of NaN, so that the loss is finite; but the gradient of its input is 0 times the weight. Ours,
// of products without AVX-512, keeps NaN, whose sign is anyone's, and the loss says it.
TEST_F(UpdateOfBadNumbers, ReluHidesNoWeight) {
  const Tensor one = Tensor::full({1, 1}, 1.0), bad = Tensor::full({1, 1}, NAN);
  const bool kept = std::isnan(linear(one, bad, {}, Activation::relu).values<float>()[0]);
  const char* const found = kept ? "batch 40: the loss is nan" : "batches 40 to 41: the gradient's norm is nan";
  for (const char* name :
       {"encoder.layers.0.feed_forward.linear_1.weight", "decoder.layers.1.feed_forward.linear_1.weight"}) {
    float& element = parameter(name).tensor->data<float>()[7];
    const float good = std::exchange(element, std::numeric_limits<float>::quiet_NaN());
    std::string message = message_of_update();
    if (const size_t sign = message.find("-nan"); kept && sign != std::string::npos) message.erase(sign, 1);
    EXPECT_EQ(message, fmt::format("step 12, epoch 3, {}; parameter {} is not finite at element 7", found, name));
    element = good;
  }
}

TEST_F(UpdateOfBadNumbers, ABiasThatReluHidesIsFoundByTheCheckOfParameters) {
  check_parameters(*model_, 11);
  parameter("encoder.layers.0.feed_forward.linear_1.bias").tensor->data<float>()[3] = NAN;
  EXPECT_EQ(message_of<NumericError>([&] { check_parameters(*model_, 12); }),
            "step 12: parameter encoder.layers.0.feed_forward.linear_1.bias is not finite at element 3");
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
    if (step == 2) after_warm_up = allocator_statistics().system_allocations;
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
