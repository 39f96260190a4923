#pragma once
// Scores of numbers that a model predicts for texts.

#include <span>

namespace [[gnu::visibility("default")]] attune {

struct RegressionScores {
  double mean_squared_error = 0;
  double pearson = 0;   // correlation of the numbers, in [-1, 1]
  double spearman = 0;  // correlation of their ranks; numbers that are equal have the mean of their ranks
};

/// The figures of GLUE for STS-B (Wang et al. 2018), as scipy.stats.pearsonr and spearmanr compute them: Pearson 1895,
/// Spearman 1904. A correlation is 0 where all predictions or all references are equal; scipy has NaN there.
///   predictions, references: as many of one as of the other
/// Throws DataError when there are more of one than of the other, there are none, or a reference is not finite, and
/// NumericError when a prediction is not finite.
RegressionScores regression_scores(std::span<const double> predictions, std::span<const double> references);
/// The same of what a model computes.
RegressionScores regression_scores(std::span<const float> predictions, std::span<const float> references);

}  // namespace attune
