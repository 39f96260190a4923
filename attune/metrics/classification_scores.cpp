#include "attune/metrics/classification_scores.h"

#include <limits>

#include "attune/base/fail.h"

namespace attune {
namespace {

double ratio(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}

}  // namespace

ClassificationScores classification_scores(std::span<const int32_t> predictions, std::span<const int32_t> references,
                                           int64_t labels) {
  if (predictions.size() != references.size())
    fail<DataError>("{} predictions for {} texts", predictions.size(), references.size());
  if (references.empty()) fail<DataError>("classification_scores: there is no text");
  if (labels < 1 || labels > std::numeric_limits<int32_t>::max())
    fail<DataError>("classification_scores: there are {} labels, expected 1 to 2^31 - 1", labels);
  const auto classes = static_cast<size_t>(labels);
  ClassificationScores scores;
  if (labels <= kMostConfusionLabels) scores.confusion.assign(classes, std::vector<int64_t>(classes, 0));
  std::vector<int64_t> predicted(classes, 0), supports(classes, 0), hits_of(classes, 0);
  int64_t correct = 0;
  for (size_t i = 0; i < references.size(); ++i) {
    for (const int32_t index : {references[i], predictions[i]})
      if (index < 0 || index >= labels) fail<DataError>("text {}: label {} is outside of the {}", i + 1, index, labels);
    const auto right = static_cast<size_t>(references[i]), found = static_cast<size_t>(predictions[i]);
    if (!scores.confusion.empty()) ++scores.confusion[right][found];
    ++predicted[found];
    ++supports[right];
    if (right != found) continue;
    ++hits_of[right];
    ++correct;
  }
  scores.accuracy = static_cast<double>(correct) / static_cast<double>(references.size());

  int64_t present = 0;
  for (size_t label = 0; label < classes; ++label) {
    LabelScore score{.support = supports[label]};
    const auto hits = static_cast<double>(hits_of[label]);
    score.precision = ratio(hits, static_cast<double>(predicted[label]));
    score.recall = ratio(hits, static_cast<double>(score.support));
    score.f1 = ratio(2 * score.precision * score.recall, score.precision + score.recall);
    if (score.support > 0 || predicted[label] > 0) ++present;
    scores.macro_f1 += score.f1;
    scores.labels.push_back(score);
  }
  scores.macro_f1 /= static_cast<double>(present);
  return scores;
}

}  // namespace attune
