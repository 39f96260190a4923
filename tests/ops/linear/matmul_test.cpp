#include "attune/ops/linear/matmul.h"

#include <gtest/gtest.h>

#include "tests/support/devices.h"
#include "tests/support/errors.h"
#include "tests/support/gradient_check.h"

namespace attune {
namespace {

TEST(Matmul, GradientForEveryTransposition) {
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      const Tensor a = normal(ta ? Shape{4, 3} : Shape{3, 4}, {.seed = 1});
      const Tensor b = normal(tb ? Shape{5, 4} : Shape{4, 5}, {.seed = 2});
      EXPECT_LT(
          gradient_error(
              [=](const std::vector<Tensor>& t) { return matmul(t[0], t[1], {.transpose_a = ta, .transpose_b = tb}); },
              {a, b}),
          1e-7);
      const Tensor f64 = matmul(a, b, {.transpose_a = ta, .transpose_b = tb});
      const Tensor f32 = matmul(a.to(DType::f32), b.to(DType::f32), {.transpose_a = ta, .transpose_b = tb});
      EXPECT_LT(relative_error(f32.to(DType::f64), f64), 1e-6);
    }
  }
}

TEST(Matmul, InnerSizesMustAgree) {
  EXPECT_EQ(message_of<ShapeError>([] {
              matmul(Tensor::zeros({2, 3}), Tensor::zeros({4, 5}));
            }),
            "matmul: [2, 3] and [4, 5] have inner sizes 3 and 4");
}

TEST(Matmul, IsTheSameOnEveryDevice) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const bool ta : {false, true}) {
      for (const bool tb : {false, true}) {
        const std::vector<Tensor> t{normal(ta ? Shape{40, 30} : Shape{30, 40}, {.dtype = dtype, .seed = 1}),
                                    normal(tb ? Shape{50, 40} : Shape{40, 50}, {.dtype = dtype, .seed = 2})};
        const auto product = [&](const std::vector<Tensor>& x) {
          return matmul(x[0], x[1], {.transpose_a = ta, .transpose_b = tb});
        };
        EXPECT_LT(device_error(product, t), device_tolerance(dtype));
      }
    }
  }
}

}  // namespace
}  // namespace attune
