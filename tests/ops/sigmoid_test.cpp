#include "attune/ops/sigmoid.h"

#include <gtest/gtest.h>

#include "tests/support/devices.h"
#include "tests/support/gradient_check.h"

namespace attune {
namespace {

TEST(Sigmoid, IsExactForSmallAndLargeNumbers) {
  const Tensor y = sigmoid(Tensor::from({4}, std::vector<double>{0, -40, 40, -1000}));
  EXPECT_DOUBLE_EQ(y.values<double>()[0], 0.5);
  EXPECT_NEAR(y.values<double>()[1] / 4.248354255291589e-18, 1, 1e-12);
  EXPECT_DOUBLE_EQ(y.values<double>()[2], 1);
  EXPECT_EQ(y.values<double>()[3], 0);
}

TEST(Sigmoid, GradientMatchesFiniteDifferences) {
  EXPECT_LT(gradient_error([](auto& t) { return sigmoid(t); }, normal({3, 5}, {.seed = 7})), 1e-7);
}

TEST(Sigmoid, IsTheSameOnEveryDevice) {
  const auto f = [](const std::vector<Tensor>& x) { return sigmoid(x[0]); };
  EXPECT_LT(device_error(f, {normal({70, 90}, {.dtype = DType::f32, .seed = 1})}), 1e-6);
}

}  // namespace
}  // namespace attune
