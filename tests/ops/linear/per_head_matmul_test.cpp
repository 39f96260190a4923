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

}  // namespace
}  // namespace attune
