#include "attune/ops/dropout.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>

#include "attune/autograd/graph.h"
#include "tests/support/gradient_check.h"
#include "tests/support/targets.h"

namespace attune {
namespace {

// The specification: one element at a time.
Tensor plain_dropout(const Tensor& x, const DropoutMask& mask) {
  const Tensor y = Tensor::zeros_like(x);
  const int64_t columns = x.size(-1);
  for (int64_t i = 0; i < x.numel(); ++i) {
    if (!keep_mask(mask, i / columns, i % columns)) continue;
    if (x.dtype() == DType::f32) {
      y.data<float>()[i] = x.data<float>()[i] * static_cast<float>(1 / (1 - mask.probability));
    } else {
      y.data<double>()[i] = x.data<double>()[i] * (1 / (1 - mask.probability));
    }
  }
  return y;
}

const DropoutMask kMask{.probability = 0.3, .seed = 17, .step = 5, .op = 3};

TEST(Dropout, EqualsItsSpecificationOnEveryTargetAndWidth) {
  for_each_target([](const char* target) {
    for (const DType dtype : {DType::f32, DType::f64}) {
      for (const int64_t columns : {1, 3, 15, 16, 17, 63, 64, 65, 130, 200}) {
        const Tensor x = normal({5, columns}, {.dtype = dtype, .seed = 1});
        EXPECT_TRUE(same_bits(dropout(x, kMask), plain_dropout(x, kMask))) << target << " " << columns;
      }
    }
  });
}

TEST(Dropout, GradientMatchesFiniteDifferences) {
  EXPECT_LT(gradient_error([](auto& x) { return dropout(x, kMask); }, normal({4, 70})), 1e-9);
}

TEST(Dropout, MaskDependsOnEveryPartOfItsName) {
  const Tensor x = Tensor::full({2, 256}, 1.0);
  const Tensor y = dropout(x, kMask);
  for (const auto& other : {DropoutMask{0.3, 18, 5, 3}, DropoutMask{0.3, 17, 6, 3}, DropoutMask{0.3, 17, 5, 4},
                            DropoutMask{0.3, (uint64_t{1} << 40) + 17, 5, 3}}) {
    EXPECT_FALSE(same_bits(y, dropout(x, other)));
  }
  EXPECT_FALSE(same_bits(y.rows(0, 1), y.rows(1, 2)));  // rows differ
  EXPECT_NE(keep_mask(kMask, 0, 0) + 2 * keep_mask(kMask, 0, 1) + 4 * keep_mask(kMask, 0, 2) +
                8 * keep_mask(kMask, 0, 3) + 16 * keep_mask(kMask, 0, 4) + 32 * keep_mask(kMask, 0, 5) +
                64 * keep_mask(kMask, 0, 6) + 128 * keep_mask(kMask, 0, 7),
            255);
}

TEST(Dropout, RowsBeyondFourBillionHaveMasksOfTheirOwn) {
  const int64_t far = (int64_t{1} << 32) + 7;
  int different = 0;
  for (int64_t c = 0; c < 256; ++c) different += keep_mask(kMask, 7, c) != keep_mask(kMask, far, c);
  EXPECT_GT(different, 50);
}

TEST(Dropout, ThreadsDoNotChangeIt) {
  const Tensor x = normal({1000, 257}, {.dtype = DType::f32});
  const auto [one, two] = with_one_and_two_threads([&] { return dropout(x, kMask); });
  EXPECT_TRUE(same_bits(one, two));
}

TEST(Dropout, InactiveMaskIsTheIdentity) {
  const Tensor x = normal({3, 3});
  EXPECT_EQ(dropout(x, {}).raw(), x.raw());
}

TEST(Dropout, KeepsTheMeanAndDropsTheRightShare) {
  rc::check([] {
    const double p = *rc::gen::map(rc::gen::inRange(1, 95), [](int percent) { return percent / 100.0; });
    const DropoutMask mask{p, *rc::gen::arbitrary<uint64_t>(), *rc::gen::arbitrary<uint64_t>(),
                           *rc::gen::arbitrary<uint32_t>()};
    const int64_t n = 300 * 700;
    const Tensor y = dropout(Tensor::full({300, 700}, 1.0), mask);
    double sum = 0;
    int64_t zeros = 0;
    for (const float v : y.values<float>()) {
      sum += v;
      zeros += v == 0;
    }
    const double deviation = std::sqrt(p * (1 - p) / n);  // of the share of zeros
    RC_ASSERT(std::abs(static_cast<double>(zeros) / n - p) < 6 * deviation);
    RC_ASSERT(std::abs(sum / n - 1) < 6 * deviation / (1 - p) + 1e-6);
  });
}

TEST(Dropout, RefusesImpossibleProbabilities) {
  const Tensor x = normal({2, 2});
  EXPECT_THROW(dropout(x, {.probability = 1}), ConfigError);
  EXPECT_THROW(dropout(x, {.probability = -0.1}), ConfigError);
  EXPECT_THROW(dropout(x, {.probability = NAN}), ConfigError);
}

}  // namespace
}  // namespace attune
