// What an update does about losses, gradients and parameters that are not finite.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "attune/autograd/graph.h"
#include "attune/ops/linear/linear.h"
#include "attune/tensor/host_view.h"
#include "attune/train/data_parallel.h"
#include "attune/train/update.h"
#include "tests/support/devices.h"
#include "tests/support/errors.h"
#include "tests/support/gradient_check.h"
#include "tests/support/in_process_ranks.h"
#include "tests/train/small_batches.h"

namespace attune {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

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

class UpdateOnRanks : public ::testing::TestWithParam<bool> {
 protected:
  // The message with which three ranks fail at once, of which `change` may spoil one.
  std::string message(const std::function<void(int, TrainingBatch&, Module&)>& change) {
    std::mutex mutex;
    std::vector<std::string> messages;
    run_in_process(3, [&](Communicator& communicator) {
      const auto model = small_lm();
      DataParallel ranks(communicator, named_parameters(*model), {.shard = GetParam(), .bucket_bytes = 4096});
      Adam adam(named_parameters(*model), {}, 0, ranks.owned());
      TrainingBatch batch = training_batch(*model, lm_batch(communicator.rank()));
      batch.labels = 24;
      change(communicator.rank(), batch, *model);
      const Tensor before = named_parameters(*model)[0].tensor->clone();
      const std::string text = message_of<NumericError>([&] {
        update(*model, adam,
               {.batches = std::span(&batch, 1), .step = 4, .first_batch = 9, .learning_rate = 0.1, .ranks = &ranks});
      });
      EXPECT_EQ(tensor_bytes(*named_parameters(*model)[0].tensor), tensor_bytes(before));
      const std::lock_guard lock(mutex);
      messages.push_back(text);
    });
    EXPECT_EQ(messages.size(), 3u);
    for (const std::string& text : messages) EXPECT_EQ(text, messages.at(0));
    return messages.at(0);
  }
  static std::string tensor_bytes(const Tensor& x) { return {static_cast<const char*>(x.raw()), x.bytes()}; }
};
INSTANTIATE_TEST_SUITE_P(Sharded, UpdateOnRanks, ::testing::Bool());

TEST_P(UpdateOnRanks, ABadLossOnOneRankFailsOnAll) {
  const std::string text = message([](int rank, TrainingBatch& batch, Module&) {
    if (rank != 1) return;
    batch.loss = [loss = batch.loss](const CrossEntropyOptions& options) {
      CrossEntropy bad = loss(options);
      bad.loss.data<float>()[0] = std::numeric_limits<float>::quiet_NaN();
      return bad;
    };
  });
  EXPECT_EQ(text, "step 4, epoch 1, batch 9: the loss is nan; all parameters and gradients are finite");
}

TEST_P(UpdateOnRanks, ABadGradientOnOneRankFailsOnAll) {
  const std::string text = message([](int rank, TrainingBatch&, Module& model) {
    if (rank != 2) return;
    const NamedParameter last = named_parameters(model).back();
    Tensor bad = Tensor::zeros_like(*last.tensor);
    bad.data<float>()[bad.numel() - 1] = std::numeric_limits<float>::infinity();
    set_gradient(*last.tensor, bad);
  });
  EXPECT_THAT(text, HasSubstr("step 4, epoch 1, batch 9: the gradient's norm is inf; the gradient of "));
  EXPECT_THAT(text, HasSubstr(" is not finite at element "));
}

// Two ranks have one each: all name the first in the order of the model.
TEST_P(UpdateOnRanks, ABadParameterOnOneRankFailsOnAll) {
  std::string first;
  const std::string text = message([&](int rank, TrainingBatch&, Module& model) {
    const std::vector<NamedParameter> parameters = named_parameters(model);
    if (rank == 0) first = parameters[parameters.size() - 2].name;
    if (rank == 1) parameters.back().tensor->data<float>()[0] = std::numeric_limits<float>::quiet_NaN();
    if (rank == 2) parameters[parameters.size() - 2].tensor->data<float>()[3] = std::numeric_limits<float>::quiet_NaN();
  });
  EXPECT_THAT(text, StartsWith("step 4, epoch 1, batch 9: the loss is "));
  EXPECT_THAT(text, EndsWith("; parameter " + first + " is not finite at element 3"));
}

}  // namespace
}  // namespace attune
