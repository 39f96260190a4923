#include "attune/ops/scale.h"

#include <gtest/gtest.h>

#include "attune/base/random.h"
#include "tests/support/devices.h"
#include "tests/support/gradient_check.h"

namespace attune {
namespace {

TEST(Scale, MultipliesEveryElement) {
  const Tensor x = normal({3, 5}, {.dtype = DType::f64, .seed = 7}), y = scaled(x, 0.25);
  for (size_t i = 0; i < 15; ++i) EXPECT_EQ(y.values<double>()[i], x.values<double>()[i] * 0.25);
  EXPECT_EQ(scaled(x, 1).address(), x.address());
}

TEST(Scale, GradientMatchesFiniteDifferences) {
  const Tensor x = normal({3, 5}, {.dtype = DType::f64, .seed = 7});
  EXPECT_LT(gradient_error([](auto& t) { return scaled(t, -1.7); }, x), 1e-7);
}

TEST(Scale, IsTheSameOnEveryDevice) {
  const Tensor x = normal({3, 5}, {.dtype = DType::f32, .seed = 7});
  EXPECT_LT(device_error([](const std::vector<Tensor>& t) { return scaled(t[0], 3.5); }, {x}), 1e-6);
}

}  // namespace
}  // namespace attune
