#include "attune/ops/balance_loss.h"

#include <gtest/gtest.h>

#include "attune/autograd/graph.h"
#include "attune/ops/residual.h"
#include "attune/ops/softmax.h"
#include "attune/ops/squared_error.h"
#include "attune/tensor/host_view.h"
#include "tests/support/devices.h"
#include "tests/support/gradient_check.h"

namespace attune {
namespace {

TEST(BalanceLoss, IsOneWhereAllExpertsGetTheSameAndTheirNumberWhereOneGetsAll) {
  EXPECT_NEAR(balance_loss(Tensor::full({6, 4}, 0.25), std::vector<int64_t>{3, 3, 3, 3}).item(), 1, 1e-6);
  EXPECT_NEAR(balance_loss(Tensor::full({6, 4}, 0.7), std::vector<int64_t>{3, 3, 3, 3}).item(), 1, 1e-6);
  const Tensor one = Tensor::from({1, 4}, std::vector<double>{0, 1, 0, 0});
  EXPECT_NEAR(balance_loss(one, std::vector<int64_t>{0, 5, 0, 0}).item(), 4, 1e-6);
}

TEST(BalanceLoss, GradientMatchesFiniteDifferences) {
  const std::vector<int64_t> counts = {5, 0, 2, 1};
  EXPECT_LT(gradient_error([&](auto& t) { return balance_loss(t, counts); }, normal({4, 4}, {.seed = 1, .mean = 5})),
            1e-6);
  EXPECT_LT(gradient_error([&](auto& t) { return balance_loss(softmax(t), counts); }, normal({4, 4}, {.seed = 2})),
            1e-6);
}

TEST(BalanceLoss, IsTheSameOnEveryDevice) {
  const std::vector<int64_t> counts = {5, 0, 2, 1};
  const auto f = [&](const std::vector<Tensor>& t) { return balance_loss(softmax(t[0]), counts); };
  EXPECT_LT(device_error(f, {normal({40, 4}, {.dtype = DType::f32, .seed = 1})}), 1e-5);
}

TEST(BalanceLoss, ALossOnTheWayAddsItsGradient) {
  Tensor x = Tensor::full({2}, 3, {.dtype = DType::f64}), z = Tensor::full({}, 2, {.dtype = DType::f64});
  require_gradient(x);
  require_gradient(z);
  const Tensor y = with_loss(x, z, 0.5);
  EXPECT_TRUE(same_bits(y, x));
  backward(y, Tensor::full({2}, 7, {.dtype = DType::f64}));
  EXPECT_EQ(gradient(x).values<double>()[1], 7);
  EXPECT_EQ(gradient(z).item(), 0.5);
}

// One of the two gradients of the loss is a number on the CPU, the other one is on the device.
TEST(BalanceLoss, ALossOnTheWayMayBePartOfAnotherLossToo) {
  for (const Device& device : all_devices()) {
    Tensor x = Tensor::from({2}, std::vector<double>{1, -3}, device);
    require_gradient(x);
    const Tensor loss = squared_error(x, Tensor::zeros_like(x), 1).loss;
    const Tensor y = with_loss(Tensor::full({1}, 5, {DType::f64, device}), loss, 0.5);
    backward(residual_dropout(loss.reshape({1}), y));
    EXPECT_EQ(host_values<double>(gradient(x)), (std::vector<double>{3, -9})) << device.text();
  }
}

}  // namespace
}  // namespace attune
