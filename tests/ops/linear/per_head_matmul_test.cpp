#include "attune/ops/linear/per_head_matmul.h"

#include <gtest/gtest.h>

#include "tests/support/devices.h"
#include "tests/support/errors.h"

namespace attune {
namespace {

TEST(PerHeadMatmul, IsTheSameOnEveryDevice) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const int64_t rows : {0, 1, 40}) {
      const Tensor x = normal({rows, 3, 20}, {.dtype = dtype, .seed = 1});
      const Tensor by_rows = normal({3 * 20, 70}, {.dtype = dtype, .seed = 2});
      const Tensor by_columns = normal({3 * 9, 20}, {.dtype = dtype, .seed = 3});
      const NoGrad no_grad;
      const double tolerance = dtype == DType::f32 ? 1e-5 : 1e-12;
      for (const Device& device : devices_under_test()) {
        EXPECT_LT(relative_error(per_head_matmul(x.to(device), by_rows.to(device)), per_head_matmul(x, by_rows)),
                  tolerance);
        EXPECT_LT(relative_error(per_head_matmul_transposed(x.to(device), by_columns.to(device)),
                                 per_head_matmul_transposed(x, by_columns)),
                  tolerance);
      }
    }
  }
}

TEST(PerHeadMatmul, RefusesWhatDoesNotFit) {
  const Tensor x = Tensor::zeros({2, 3, 4});
  EXPECT_EQ(message_of<ShapeError>([&] {
              per_head_matmul(x, Tensor::zeros({11, 5}));
            }),
            "per_head_matmul: x [2, 3, 4] needs a weight with 12 rows, found [11, 5]");
  EXPECT_THROW(per_head_matmul_transposed(x, Tensor::zeros({12, 5})), ShapeError);
  EXPECT_THROW(per_head_matmul(x, Tensor::zeros({12, 5}, {.dtype = DType::f64})), ShapeError);
  EXPECT_THROW(per_head_matmul(x, Tensor::zeros({12, 5}, {.device = Plain{}})), ShapeError);
}

TEST(PerHeadMatmul, AgreesWithPlainLoops) {
  const int64_t rows = 3, heads = 2, in = 21, out = 35;
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensor x = normal({rows, heads, in}, {.dtype = DType::f64, .seed = 1});
    const Tensor by_rows = normal({heads * in, out}, {.dtype = DType::f64, .seed = 2}),
                 by_columns = normal({heads * out, in}, {.dtype = DType::f64, .seed = 3});
    Tensor y = Tensor::zeros({rows, heads, out}, {.dtype = DType::f64}),
           z = Tensor::zeros({rows, heads, out}, {.dtype = DType::f64});
    for (int64_t i = 0; i < rows * heads; ++i)
      for (int64_t o = 0; o < out; ++o)
        for (int64_t c = 0; c < in; ++c) {
          y.data<double>()[i * out + o] +=
              x.data<double>()[i * in + c] * by_rows.data<double>()[(i % heads * in + c) * out + o];
          z.data<double>()[i * out + o] +=
              x.data<double>()[i * in + c] * by_columns.data<double>()[(i % heads * out + o) * in + c];
        }
    const double tolerance = dtype == DType::f32 ? 1e-5 : 1e-13;
    EXPECT_LT(relative_error(per_head_matmul(x.to(dtype), by_rows.to(dtype)).to(DType::f64), y), tolerance);
    EXPECT_LT(relative_error(per_head_matmul_transposed(x.to(dtype), by_columns.to(dtype)).to(DType::f64), z),
              tolerance);
  }
}

}  // namespace
}  // namespace attune
