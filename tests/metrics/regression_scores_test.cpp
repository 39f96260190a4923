#include "attune/metrics/regression_scores.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "tests/support/errors.h"

namespace attune {
namespace {

using Numbers = std::vector<float>;

TEST(RegressionScores, OfAnExampleDoneByHand) {
  // Both have the mean 3 and squares of 10 about it; the products are -2 * -1 + -1 * -2 + 0 * 1 + 1 * 0 + 2 * 2 = 8.
  const RegressionScores s = regression_scores(Numbers{1, 2, 3, 4, 5}, Numbers{2, 1, 4, 3, 5});
  EXPECT_DOUBLE_EQ(s.mean_squared_error, 4.0 / 5);
  EXPECT_DOUBLE_EQ(s.pearson, 0.8);
  EXPECT_DOUBLE_EQ(s.spearman, 1 - 6.0 * 4 / (5 * 24));  // without ties: 1 - 6 sum(d^2) / (n (n^2 - 1))
}

TEST(RegressionScores, AreThoseOfScipy) {  // 1.17.1: pearsonr(predictions, references), spearmanr
  const RegressionScores s =
      regression_scores(Numbers{4.75, 3.5, 0.25, 2.5, 2.5, 1, 4, 3.5}, Numbers{5, 3, 0.5, 2, 3, 1.5, 4, 3});
  EXPECT_NEAR(s.mean_squared_error, 0.171875, 1e-12);
  EXPECT_NEAR(s.pearson, 0.9567400931071, 1e-12);
  EXPECT_NEAR(s.spearman, 0.96303635673335, 1e-12) << "with ties on both sides";
  const RegressionScores far = regression_scores(Numbers{-2.5, 80, 80, 31.25, 7}, Numbers{1.5, 100, 64, 64, -8});
  EXPECT_NEAR(far.mean_squared_error, 393.9125, 1e-9);
  EXPECT_NEAR(far.pearson, 0.8851176044252197, 1e-12);
  EXPECT_NEAR(far.spearman, 0.8157894736842107, 1e-12);
}

// Of numbers that float32 would take for equal, and of those whose squares no double holds.
TEST(RegressionScores, AreThoseOfDoubles) {
  using Doubles = std::vector<double>;
  const Doubles near = {1, 1 + 1e-12, 1 + 2e-12, 1 + 3e-12}, right = {1, 2, 3, 4};
  EXPECT_NEAR(regression_scores(near, right).pearson, 1, 1e-6);
  EXPECT_EQ(regression_scores(near, right).spearman, 1);
  EXPECT_DOUBLE_EQ(regression_scores(Doubles{0.1}, Doubles{0}).mean_squared_error, 0.1 * 0.1);
  EXPECT_DOUBLE_EQ(regression_scores(Doubles{1e200, 2e200, 3e200}, Doubles{1e-200, 2e-200, 3e-200}).pearson, 1);
}

TEST(RegressionScores, CorrelationsDoNotChangeWithScaleAndMean) {
  const Numbers references = {1, 5, 2, 4, 3};
  Numbers scaled;
  for (const float number : references) scaled.push_back(100 - 10 * number);
  const RegressionScores s = regression_scores(scaled, references);
  EXPECT_NEAR(s.pearson, -1, 1e-12);
  EXPECT_NEAR(s.spearman, -1, 1e-12);
  EXPECT_EQ(regression_scores(references, references).mean_squared_error, 0);
  EXPECT_NEAR(regression_scores(Numbers{1, 10, 100}, Numbers{1, 2, 3}).spearman, 1, 1e-12);
}

TEST(RegressionScores, NumbersThatAreAllEqualHaveNoCorrelation) {
  const RegressionScores s = regression_scores(Numbers{0.1F, 0.1F, 0.1F}, Numbers{1, 2, 3});
  EXPECT_EQ(s.pearson, 0);
  EXPECT_EQ(s.spearman, 0);
  EXPECT_EQ(regression_scores(Numbers{1, 2, 3}, Numbers{0.1F, 0.1F, 0.1F}).pearson, 0);
  EXPECT_EQ(regression_scores(Numbers{2}, Numbers{1}).pearson, 0);
  EXPECT_EQ(regression_scores(Numbers{2}, Numbers{1}).mean_squared_error, 1);
}

TEST(RegressionScores, RefusesWhatCannotBeCompared) {
  EXPECT_THROW(regression_scores(Numbers{1, 2}, Numbers{1}), DataError);
  EXPECT_THROW(regression_scores(Numbers{}, Numbers{}), DataError);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(message_of<NumericError>([&] {
              regression_scores(Numbers{1, nan}, Numbers{1, 2});
            }),
            "text 2: the prediction is nan");
  EXPECT_THROW(regression_scores(Numbers{1, 2}, Numbers{nan, 2}), DataError);
}

}  // namespace
}  // namespace attune
