#include "attune/metrics/regression_scores.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "attune/base/fail.h"

namespace attune {
namespace {

// The numbers less their mean, the largest as 1 or -1, so that squares stay within the range of doubles.
std::vector<double> centred(std::span<const double> numbers) {
  const double mean = std::accumulate(numbers.begin(), numbers.end(), 0.0) / static_cast<double>(numbers.size());
  std::vector<double> rest(numbers.begin(), numbers.end());
  double largest = 0;
  for (double& number : rest) largest = std::max(largest, std::abs(number -= mean));
  if (largest > 0)
    for (double& number : rest) number /= largest;
  return rest;
}

bool all_equal(std::span<const double> numbers) {
  return std::ranges::all_of(numbers, [&](double number) { return number == numbers.front(); });
}

double correlation(std::span<const double> a, std::span<const double> b) {
  if (all_equal(a) || all_equal(b)) return 0;  // rounding may leave differences from the mean
  const std::vector<double> x = centred(a), y = centred(b);
  const auto length = [](const std::vector<double>& v) {
    return std::sqrt(std::inner_product(v.begin(), v.end(), v.begin(), 0.0));
  };
  const double lengths = length(x) * length(y);
  return lengths > 0 ? std::clamp(std::inner_product(x.begin(), x.end(), y.begin(), 0.0) / lengths, -1.0, 1.0) : 0;
}

// From 1, in the order of the numbers.
std::vector<double> ranks(std::span<const double> numbers) {
  std::vector<size_t> order(numbers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t i) { return numbers[i]; });
  std::vector<double> ranks(numbers.size());
  for (size_t begin = 0, end; begin < order.size(); begin = end) {
    for (end = begin + 1; end < order.size() && numbers[order[end]] == numbers[order[begin]];) ++end;
    const double mean = static_cast<double>(begin + 1 + end) / 2;  // of begin + 1, ..., end
    for (size_t i = begin; i < end; ++i) ranks[order[i]] = mean;
  }
  return ranks;
}

template <class Failure>
void check_finite(std::span<const double> numbers, const char* name) {
  for (size_t i = 0; i < numbers.size(); ++i)
    if (!std::isfinite(numbers[i])) fail<Failure>("text {}: the {} is {}", i + 1, name, numbers[i]);
}

}  // namespace

RegressionScores regression_scores(std::span<const double> predictions, std::span<const double> references) {
  if (predictions.size() != references.size())
    fail<DataError>("{} predictions for {} texts", predictions.size(), references.size());
  if (references.empty()) fail<DataError>("regression_scores: there is no text");
  check_finite<NumericError>(predictions, "prediction");
  check_finite<DataError>(references, "right number");
  RegressionScores scores;
  for (size_t i = 0; i < predictions.size(); ++i) {
    const double difference = predictions[i] - references[i];
    scores.mean_squared_error += difference * difference;
  }
  scores.mean_squared_error /= static_cast<double>(predictions.size());
  scores.pearson = correlation(predictions, references);
  scores.spearman = correlation(ranks(predictions), ranks(references));
  return scores;
}

RegressionScores regression_scores(std::span<const float> predictions, std::span<const float> references) {
  const std::vector<double> found(predictions.begin(), predictions.end()), right(references.begin(), references.end());
  return regression_scores(std::span(found), std::span(right));
}

}  // namespace attune
