#include "attune/ops/attention/concat_heads.h"

#include <gtest/gtest.h>

#include "tests/support/devices.h"
#include "tests/support/errors.h"
#include "tests/support/gradient_check.h"
#include "tests/support/targets.h"

namespace attune {
namespace {

TEST(ConcatHeads, PutsThePartsOfEachHeadSideBySide) {
  const int64_t n = 7, heads = 3, d_a = 4, d_b = 2;
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const int64_t b_heads : {heads, int64_t{1}}) {
      const Tensor a = normal({n, heads, d_a}, {.seed = 1}), b = normal({n, b_heads, d_b}, {.seed = 2});
      const Tensor y = concat_heads(a.to(dtype), b.to(dtype)).to(DType::f64);
      ASSERT_EQ(y.shape(), (Shape{n, heads, d_a + d_b}));
      for (int64_t i = 0; i < y.numel(); ++i) {
        const int64_t row = i / (heads * (d_a + d_b)), head = i / (d_a + d_b) % heads, c = i % (d_a + d_b);
        const double expected = c < d_a ? a.data<double>()[(row * heads + head) * d_a + c]
                                        : b.data<double>()[(row * b_heads + head % b_heads) * d_b + c - d_a];
        EXPECT_NEAR(y.data<double>()[i], expected, dtype == DType::f32 ? 1e-6 : 0) << i;
      }
    }
  }
}

TEST(ConcatHeads, GradientMatchesFiniteDifferences) {
  for (const int64_t b_heads : {3, 1}) {
    EXPECT_LT(gradient_error([](auto& t) { return concat_heads(t[0], t[1]); },
                             std::vector{normal({4, 3, 5}, {.seed = 1}), normal({4, b_heads, 2}, {.seed = 2})}),
              1e-8);
  }
}

TEST(ConcatHeads, ThreadsDoNotChangeIt) {
  const Tensor a = normal({2000, 4, 24}, {.dtype = DType::f32, .seed = 1}),
               b = normal({2000, 1, 8}, {.dtype = DType::f32, .seed = 2});
  const auto [one, two] = with_one_and_two_threads([&] { return concat_heads(a, b); });
  EXPECT_TRUE(same_bits(one, two));
}

TEST(ConcatHeads, TakesEmptyParts) {
  EXPECT_EQ(concat_heads(Tensor::zeros({0, 2, 3}), Tensor::zeros({0, 1, 4})).shape(), (Shape{0, 2, 7}));
  const Tensor b = normal({2, 3, 4}, {.seed = 1});
  EXPECT_TRUE(same_bits(concat_heads(Tensor::zeros({2, 3, 0}, {.dtype = DType::f64}), b), b));
}

TEST(ConcatHeads, NamesWhatDoesNotFit) {
  const auto message = [](const Tensor& a, const Tensor& b) {
    return message_of<ShapeError>([&] { concat_heads(a, b); });
  };
  EXPECT_EQ(message(Tensor::zeros({2, 3, 4}), Tensor::zeros({2, 2, 4})),
            "concat_heads: a [2, 3, 4] has 3 heads but b [2, 2, 4] has 2, needs as many or 1");
  EXPECT_EQ(message(Tensor::zeros({2, 3, 4}), Tensor::zeros({1, 3, 4})),
            "concat_heads: a [2, 3, 4] has 2 rows but b [1, 3, 4] has 1");
  EXPECT_THROW(concat_heads(Tensor::zeros({2, 3}), Tensor::zeros({2, 3, 4})), ShapeError);
  EXPECT_THROW(concat_heads(Tensor::zeros({2, 3, 4}), {}), ShapeError);
  EXPECT_THROW(concat_heads(Tensor::zeros({2, 3, 4}), Tensor::zeros({2, 3, 4}, {.dtype = DType::f64})), ShapeError);
}

TEST(ConcatHeads, IsTheSameOnEveryDevice) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const int64_t b_heads : {3, 1}) {
      EXPECT_LT(device_error([](const std::vector<Tensor>& t) { return concat_heads(t[0], t[1]); },
                             {normal({4, 3, 5}, {.dtype = dtype, .seed = 1}),
                              normal({4, b_heads, 2}, {.dtype = dtype, .seed = 2})}),
                dtype == DType::f32 ? 1e-5 : 1e-12);
    }
  }
  EXPECT_EQ(message_of<ShapeError>([] {
              concat_heads(Tensor::zeros({2, 3, 4}), Tensor::zeros({2, 3, 4}, {.device = Plain{}}));
            }),
            "concat_heads: the input is on cpu but another tensor on plain");
}

}  // namespace
}  // namespace attune
