#include "attune/ops/mean_pool.h"

#include <gtest/gtest.h>

#include "attune/autograd/graph.h"
#include "tests/support/errors.h"
#include "tests/support/gradient_check.h"

namespace attune {
namespace {

TEST(SequenceMeans, AreTheMeansOfEachSequence) {
  const Tensor x = Tensor::from<double>({4, 2}, std::vector<double>{1, 2, 3, 4, 5, 9, 7, -1});
  const Tensor means = mean_pool(x, Sequences::from_lengths({2, 0, 1, 1}));
  EXPECT_EQ(means.shape(), (Shape{4, 2}));
  const std::vector<double> expected = {2, 3, 0, 0, 5, 9, 7, -1};
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_DOUBLE_EQ(means.values<double>()[i], expected[i]) << i;
}

TEST(SequenceMeans, GradientMatchesFiniteDifferences) {
  const Sequences sequences = Sequences::from_lengths({3, 0, 1, 5});
  EXPECT_LT(gradient_error([&](auto& t) { return mean_pool(t, sequences); }, normal({9, 4}, {.seed = 3})), 1e-7);
}

TEST(SequenceMeans, RefusesOtherRows) {
  EXPECT_EQ(message_of<ShapeError>([] {
              mean_pool(normal({3, 2}), Sequences::from_lengths({2}));
            }),
            "mean_pool: x [3, 2] does not fit sequences of 2 rows");
}

}  // namespace
}  // namespace attune
