// The errors that tests compute: tests/support/gradient_check.h, largest_error.h and devices.h.
#include "tests/support/gradient_check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "attune/autograd/graph.h"
#include "tests/support/devices.h"
#include "tests/support/largest_error.h"

namespace attune {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInfinity = std::numeric_limits<double>::infinity();

double error_of(const std::vector<double>& found, const std::vector<double>& expected) {
  const auto n = static_cast<int64_t>(found.size());
  return relative_error(Tensor::from({n}, found), Tensor::from({n}, expected));
}

TEST(RelativeError, IsAShareOfTheLargestMagnitude) {
  EXPECT_EQ(error_of({1, -3, 8}, {1, -4, 8}), 0.125);
  EXPECT_EQ(error_of({0, 0.5}, {0, 0}), 0.5);
  EXPECT_EQ(error_of({}, {}), 0);
}

TEST(RelativeError, KeepsNaNWhereverItStands) {
  const std::vector<double> whole{1, 2, 3};
  for (size_t i = 0; i < whole.size(); ++i) {
    std::vector<double> broken = whole;
    broken[i] = kNan;
    EXPECT_TRUE(std::isnan(error_of(broken, whole))) << i;
    EXPECT_TRUE(std::isnan(error_of(whole, broken))) << i;
  }
}

TEST(RelativeError, AnInfinityIsNoErrorWhereItIsExpected) {
  EXPECT_EQ(error_of({kInfinity, -kInfinity, 3}, {kInfinity, -kInfinity, 4}), 0.25);
  EXPECT_EQ(error_of({kInfinity, 4}, {3, 4}), kInfinity);
  EXPECT_EQ(error_of({3, 4}, {kInfinity, 4}), kInfinity);
  EXPECT_EQ(error_of({-kInfinity, 4}, {kInfinity, 4}), kInfinity);
}

TEST(LargerError, KeepsNaN) {
  EXPECT_EQ(larger_error(1, 2), 2);
  EXPECT_EQ(larger_error(2, 1), 2);
  EXPECT_TRUE(std::isnan(larger_error(kNan, 1)));
  EXPECT_TRUE(std::isnan(larger_error(1, kNan)));
}

// The gradient of the second input is right.
TEST(GradientError, KeepsNaNOfOneInput) {
  const auto sum = [](const std::vector<Tensor>& t) {
    Tensor y = t[0].clone();
    add_in_place(y, t[1]);
    record("sum", {t[0], t[1]}, y, [](const Tensor& dy) {
      const Tensor broken = dy.clone();
      broken.data<double>()[0] = kNan;
      return Gradients{broken, dy};
    });
    return y;
  };
  EXPECT_TRUE(std::isnan(gradient_error(sum, {normal({3}, {.seed = 1}), normal({3}, {.seed = 2})})));
}

TEST(DeviceError, KeepsNaNOfADevice) {
  const auto broken_elsewhere = [](const std::vector<Tensor>& t) {
    const Tensor y = t[0].detach().clone();
    if (y.device() != Device(Cpu{})) y.rows(0, 1).fill(kNan);
    return y;
  };
  EXPECT_TRUE(std::isnan(device_error(broken_elsewhere, {normal({3}, {.seed = 1})})));
}

}  // namespace
}  // namespace attune
