#include "attune/ops/softmax.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>

#include "attune/autograd/graph.h"
#include "tests/support/devices.h"
#include "tests/support/gradient_check.h"
#include "tests/support/targets.h"

namespace attune {
namespace {

Tensor plain_softmax(const Tensor& input) {
  const Tensor x = input.to(DType::f64);
  const Tensor y = Tensor::empty_like(x);
  const int64_t d = x.size(-1);
  for (int64_t row = 0; row < x.numel() / d; ++row) {
    double sum = 0;
    for (int64_t j = 0; j < d; ++j) sum += std::exp(x.data<double>()[row * d + j]);
    for (int64_t j = 0; j < d; ++j) y.data<double>()[row * d + j] = std::exp(x.data<double>()[row * d + j]) / sum;
  }
  return y;
}

TEST(Softmax, GradientMatchesFiniteDifferences) {
  EXPECT_LT(gradient_error([](auto& x) { return softmax(x); }, normal({3, 5}, {.seed = 7})), 1e-7);
  EXPECT_LT(gradient_error([](auto& x) { return softmax(x); }, normal({2, 3, 37}, {.seed = 7})), 1e-7);
  EXPECT_LT(gradient_error([](auto& x) { return log_softmax(x); }, normal({3, 21}, {.seed = 7})), 1e-7);
}

TEST(Softmax, EqualsTheFormulaOnEveryTargetAndWidth) {
  for_each_target([](const char* target) {
    for (const int64_t d : {1, 2, 15, 16, 17, 100, 1000}) {
      const Tensor x = normal({6, d}, {.seed = 1, .deviation = 4});
      const Tensor expected = plain_softmax(x);
      EXPECT_LT(relative_error(softmax(x), expected), 1e-14) << target << " " << d;
      EXPECT_LT(relative_error(softmax(x.to(DType::f32)), expected), 2e-6) << target << " " << d;
      const Tensor logarithms = expected.clone();
      for (double& v : logarithms.values<double>()) v = std::log(v);
      EXPECT_LE(relative_error(log_softmax(x), logarithms), 1e-13) << target << " " << d;
      EXPECT_LE(relative_error(log_softmax(x.to(DType::f32)), logarithms), d == 1 ? 0 : 2e-6) << target << " " << d;
    }
  });
}

// Above 2^24 float32 has no odd numbers, let alone fractions.
TEST(Softmax, LogarithmsOfLargeNumbersStayPrecise) {
  for_each_target([](const char* target) {
    const Tensor y = log_softmax(Tensor::full({2, 21}, 1e8));
    for (const float v : y.values<float>()) EXPECT_NEAR(v, -std::log(21.0), 1e-6) << target;
  });
}

// Two numbers, the larger 0: the other's weight is e^x / (1 + e^x) down to the smallest normal numbers, then 0.
TEST(Softmax, FollowsExponentialsToTheirEnd) {
  constexpr int64_t kRows = 4096;
  Tensor x = Tensor::zeros({kRows, 2}, {.dtype = DType::f32});
  for (int64_t i = 0; i < kRows; ++i) x.data<float>()[2 * i] = -100.0f * static_cast<float>(i) / kRows;
  const Tensor expected = plain_softmax(x);
  for_each_target([&](const char* target) {
    const Tensor y = softmax(x);
    for (int64_t i = 0; i < kRows; ++i) {
      const double wanted = x.data<float>()[2 * i] < -87 ? 0 : expected.data<double>()[2 * i];
      EXPECT_NEAR(y.data<float>()[2 * i], wanted, 4e-7 * wanted) << target << " " << x.data<float>()[2 * i];
    }
  });
}

TEST(Softmax, MaskedRowsGiveZerosAndNeverNaN) {
  for_each_target([](const char* target) {
    for (const DType dtype : {DType::f32, DType::f64}) {
      for (const int64_t d : {1, 16, 21}) {
        Tensor x = Tensor::full({2, d}, -INFINITY, {.dtype = dtype});
        dtype == DType::f32 ? void(x.data<float>()[d] = 3) : void(x.data<double>()[d] = 3);
        require_gradient(x);
        const Tensor y = softmax(x).to(DType::f64);
        for (int64_t j = 0; j < d; ++j) {
          EXPECT_EQ(y.data<double>()[j], 0) << target;
          EXPECT_EQ(y.data<double>()[d + j], j == 0 ? 1 : 0) << target;
        }
        backward(softmax(x), normal({2, d}, {.dtype = dtype}));
        EXPECT_EQ(first_not_finite(gradient(x)), -1) << target;
        const Tensor logarithms = log_softmax(x).to(DType::f64);
        EXPECT_EQ(logarithms.data<double>()[0], -INFINITY) << target;
        EXPECT_EQ(logarithms.data<double>()[d], 0) << target;
      }
    }
  });
}

TEST(Softmax, NaNIsSeen) {
  for_each_target([](const char* target) {
    const Tensor x = Tensor::full({1, 20}, 1.0);
    x.data<float>()[3] = NAN;
    for (const float v : softmax(x).values<float>()) EXPECT_TRUE(std::isnan(v)) << target;
  });
}

TEST(Softmax, InfinityGivesNaNOnEveryDevice) {
  std::vector<Device> devices = devices_under_test();
  devices.insert(devices.end(), {Cpu{}, Plain{}});
  for (const Device& device : devices) {
    const Tensor x = Tensor::full({1, 20}, 1.0);
    x.data<float>()[3] = INFINITY;
    for (const float v : softmax(x.to(device)).to(Cpu{}).values<float>()) EXPECT_TRUE(std::isnan(v)) << device.text();
  }
}

TEST(Softmax, ThreadsDoNotChangeIt) {
  const Tensor x = normal({1000, 301}, {.dtype = DType::f32});
  const auto [one, two] = with_one_and_two_threads([&] { return softmax(x); });
  EXPECT_TRUE(same_bits(one, two));
}

TEST(Softmax, RowsSumToOneWhateverIsAdded) {
  rc::check([] {
    const auto d = *rc::gen::inRange<int64_t>(1, 200);
    const double shift = *rc::gen::inRange(-1000, 1000);
    const Tensor x =
        normal({3, d}, {.dtype = DType::f32, .seed = *rc::gen::arbitrary<uint64_t>(), .mean = shift, .deviation = 10});
    const Tensor y = softmax(x);
    for (int64_t row = 0; row < 3; ++row) {
      double sum = 0;
      for (const float v : y.rows(row, row + 1).values<float>()) {
        RC_ASSERT(v >= 0 && v <= 1.000001f);
        sum += v;
      }
      RC_ASSERT(std::abs(sum - 1) < 1e-5);
    }
  });
}

TEST(Softmax, NamesWhatItCannotTake) {
  EXPECT_THAT([] { softmax(Tensor::full({}, 1.0)); },
              testing::ThrowsMessage<ShapeError>(testing::HasSubstr("softmax: needs at least one dimension")));
  EXPECT_THAT([] { softmax(Tensor::zeros({2}, {.dtype = DType::i32})); },
              testing::ThrowsMessage<ShapeError>(testing::HasSubstr("found int32")));
  EXPECT_THROW(softmax(Tensor{}), ShapeError);
}

}  // namespace
}  // namespace attune
