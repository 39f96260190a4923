#include "attune/ops/residual.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attune/autograd/graph.h"
#include "tests/support/gradient_check.h"
#include "tests/support/targets.h"

namespace attune {
namespace {

const DropoutMask kMask{.probability = 0.2, .seed = 1, .step = 2, .op = 3};

TEST(Residual, IsTheSumWithDropoutOnEveryTarget) {
  const Tensor x = normal({7, 83}, {.dtype = DType::f32, .seed = 1});
  const Tensor y = normal({7, 83}, {.dtype = DType::f32, .seed = 2});
  for_each_target([&](const char* target) {
    for (const DropoutMask& mask : {kMask, DropoutMask{}}) {
      const Tensor dropped = dropout(y, mask);
      Tensor expected = x.clone();
      for (int64_t i = 0; i < x.numel(); ++i) expected.data<float>()[i] += dropped.data<float>()[i];
      EXPECT_TRUE(same_bits(residual_dropout(x, y, mask), expected)) << target;
    }
  });
}

TEST(Residual, GradientMatchesFiniteDifferences) {
  for (const DropoutMask& mask : {kMask, DropoutMask{}}) {
    EXPECT_LT(gradient_error([&](auto& t) { return residual_dropout(t[0], t[1], mask); },
                             std::vector{normal({3, 65}, {.seed = 1}), normal({3, 65}, {.seed = 2})}),
              1e-9);
  }
}

TEST(Residual, GradientOfTheStreamIsNotCopied) {
  Tensor x = normal({3, 5});
  require_gradient(x);
  const Tensor dy = normal({3, 5}, {.seed = 3});
  backward(residual_dropout(x, normal({3, 5}), kMask), dy);
  EXPECT_EQ(gradient(x).raw(), dy.raw());
}

TEST(Residual, NamesShapesThatDoNotFit) {
  try {
    residual_dropout(normal({3, 5}), normal({5, 3}));
    FAIL();
  } catch (const ShapeError& error) {
    EXPECT_THAT(error.what(), testing::AllOf(testing::HasSubstr("[3, 5]"), testing::HasSubstr("[5, 3]")));
  }
}

}  // namespace
}  // namespace attune
