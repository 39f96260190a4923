#include "attune/ops/take_columns.h"

#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/gradient_check.h"

namespace attune {
namespace {

TEST(TakeColumns, CopiesThem) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensor x = normal({5, 9}, {.dtype = dtype, .seed = 1});
    for (const auto& [begin, end] : {std::pair{0, 9}, {2, 6}, {8, 9}, {4, 4}}) {
      const Tensor y = take_columns(x, begin, end).to(DType::f64);
      ASSERT_EQ(y.shape(), (Shape{5, end - begin}));
      for (int64_t i = 0; i < y.numel(); ++i)
        EXPECT_EQ(y.data<double>()[i],
                  x.to(DType::f64).data<double>()[i / (end - begin) * 9 + begin + i % (end - begin)]);
    }
  }
}

TEST(TakeColumns, GradientMatchesFiniteDifferences) {
  const Tensor x = normal({4, 7}, {.seed = 1});
  EXPECT_LT(gradient_error([](auto& t) { return take_columns(t, 2, 6); }, x), 1e-8);
}

TEST(TakeColumns, RefusesColumnsThatAreNotThere) {
  const Tensor x = Tensor::zeros({2, 5});
  EXPECT_EQ(message_of<ShapeError>([&] { take_columns(x, 3, 6); }), "take_columns: columns [3, 6) of [2, 5]");
  EXPECT_THROW(take_columns(x, -1, 2), ShapeError);
  EXPECT_THROW(take_columns(x, 3, 2), ShapeError);
  EXPECT_THROW(take_columns(Tensor::zeros({5}), 0, 1), ShapeError);
  EXPECT_THROW(take_columns({}, 0, 0), ShapeError);
}

}  // namespace
}  // namespace attune
