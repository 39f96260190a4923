#include "attune/ops/squared_error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attune/autograd/graph.h"
#include "tests/support/devices.h"
#include "tests/support/errors.h"
#include "tests/support/gradient_check.h"

namespace attune {
namespace {

using ::testing::HasSubstr;

TEST(SquaredError, IsTheMeanOrAShareOfTheSum) {
  const Tensor x = Tensor::from({4, 1}, std::vector<double>{1, 2, 3, 4});
  const Tensor target = Tensor::from({4, 1}, std::vector<double>{1, 0, 3.5, 8});
  const SquaredError mean = squared_error(x, target);
  EXPECT_DOUBLE_EQ(mean.sum.item(), 4 + 0.25 + 16);
  EXPECT_DOUBLE_EQ(mean.loss.item(), 20.25 / 4);
  EXPECT_DOUBLE_EQ(squared_error(x, target, 0.1).loss.item(), 2.025);
}

TEST(SquaredError, GradientMatchesFiniteDifferences) {
  const Tensor target = normal({5, 3}, {.seed = 1, .mean = 4});
  const Tensor x = normal({5, 3}, {.seed = 2});
  EXPECT_LT(gradient_error([&](auto& t) { return squared_error(t, target).loss; }, x), 1e-7);
  EXPECT_LT(gradient_error([&](auto& t) { return squared_error(t, target, 0.7).loss; }, x), 1e-7);
}

TEST(SquaredError, TargetsHaveNoGradient) {
  Tensor x = Tensor::full({2}, 3, {.dtype = DType::f64}), target = Tensor::full({2}, 1, {.dtype = DType::f64});
  require_gradient(x);
  require_gradient(target);
  backward(squared_error(x, target).loss);
  EXPECT_DOUBLE_EQ(gradient(x).values<double>()[1], 2);
  EXPECT_FALSE(gradient(target).defined());
}

TEST(SquaredError, IsTheSameOnEveryDevice) {
  const Tensor target = normal({1300, 1}, {.dtype = DType::f32, .seed = 3});
  const auto f = [&](const std::vector<Tensor>& t) { return squared_error(t[0], target.to(t[0].device())).loss; };
  EXPECT_LT(device_error(f, {normal({1300, 1}, {.dtype = DType::f32, .seed = 1})}), 1e-5);
  const auto on_device = [](const std::vector<Tensor>& t) { return squared_error(t[0], t[0].detach()).loss; };
  EXPECT_LT(device_error(on_device, {normal({1}, {.dtype = DType::f32, .seed = 1})}), 1e-6);
}

TEST(SquaredError, OfNothingIsZero) {
  const Tensor none = Tensor::empty({0, 1});
  EXPECT_EQ(squared_error(none, none).loss.item(), 0);
}

// In float64 and with this scale they are equal.
TEST(SquaredError, LossAndSumShareNoMemory) {
  const SquaredError error = squared_error(normal({4, 1}, {.seed = 1}), normal({4, 1}, {.seed = 2}), 1);
  const double sum = error.sum.item();
  EXPECT_EQ(error.loss.item(), sum);
  error.loss.fill(-1);
  EXPECT_EQ(error.sum.item(), sum);
}

TEST(SquaredError, RefusesTargetsOfAnotherShape) {
  const Tensor x = normal({4, 1});
  EXPECT_THAT(message_of<ShapeError>([&] { squared_error(x, normal({4})); }), HasSubstr("squared_error"));
  EXPECT_THROW(squared_error(x, normal({4, 1}, {.dtype = DType::f32})), ShapeError);
  EXPECT_THROW(squared_error(Tensor(), x), ShapeError);
}

}  // namespace
}  // namespace attune
