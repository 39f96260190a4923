#include "attune/ops/log_mean_exp.h"

#include <gtest/gtest.h>

#include <cmath>

#include "attune/base/error.h"
#include "tests/support/devices.h"
#include "tests/support/gradient_check.h"
#include "tests/support/targets.h"

namespace attune {
namespace {

Tensor plain(const std::vector<Tensor>& x) {
  const Tensor y = Tensor::empty_like(x[0]);
  for (int64_t i = 0; i < y.numel(); ++i) {
    double mean = 0;
    for (const Tensor& of : x) mean += std::exp(of.data<double>()[i]) / static_cast<double>(x.size());
    y.data<double>()[i] = std::log(mean);
  }
  return y;
}

TEST(LogMeanExp, EqualsTheFormulaOnEveryTargetAndSize) {
  for_each_target([](const char* target) {
    for (const int64_t columns : {1, 15, 16, 17, 1000}) {
      const std::vector<Tensor> x = {normal({6, columns}, {.seed = 1, .deviation = 4}),
                                     normal({6, columns}, {.seed = 2, .deviation = 4}),
                                     normal({6, columns}, {.seed = 3, .deviation = 4})};
      const std::vector<Tensor> narrow = {x[0].to(DType::f32), x[1].to(DType::f32), x[2].to(DType::f32)};
      EXPECT_LT(relative_error(log_mean_exp(x), plain(x)), 1e-13) << target << " " << columns;
      EXPECT_LT(relative_error(log_mean_exp(narrow), plain(x)), 1e-6) << target << " " << columns;
    }
  });
}

TEST(LogMeanExp, KeepsWhatIsTooSmallForAProbability) {
  for_each_target([](const char* target) {
    const std::vector<Tensor> x = {Tensor::full({1, 3}, -500, {.dtype = DType::f32}),
                                   Tensor::full({1, 3}, -INFINITY, {.dtype = DType::f32})};
    x[0].data<float>()[1] = -INFINITY;
    x[0].data<float>()[2] = NAN;
    const Tensor y = log_mean_exp(x);
    EXPECT_NEAR(y.data<float>()[0], -500 - std::log(2), 1e-4) << target;
    EXPECT_EQ(y.data<float>()[1], -INFINITY) << target;
    EXPECT_TRUE(std::isnan(y.data<float>()[2])) << target;
  });
}

TEST(LogMeanExp, IsTheSameOnEveryDevice) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const std::vector<Tensor> x = {normal({6, 37}, {.dtype = dtype, .seed = 1, .deviation = 4}),
                                   normal({6, 37}, {.dtype = dtype, .seed = 2, .deviation = 4})};
    for (const Device& device : devices_under_test())
      EXPECT_LT(relative_error(log_mean_exp(copies_on(device, x)), log_mean_exp(x)), dtype == DType::f32 ? 1e-6 : 1e-13)
          << device.text();
  }
}

TEST(LogMeanExp, RefusesWhatDoesNotFit) {
  EXPECT_THROW(log_mean_exp({}), ShapeError);
  const std::vector<Tensor> x = {Tensor::full({1, 3}, 0, {.dtype = DType::f32}),
                                 Tensor::full({1, 4}, 0, {.dtype = DType::f32})};
  EXPECT_THROW(log_mean_exp(x), ShapeError);
}

}  // namespace
}  // namespace attune
