#pragma once
// Scores of a classifier's labels.

#include <cstdint>
#include <span>
#include <vector>

namespace [[gnu::visibility("default")]] attune {

/// Scores of one label; 0 where the divisor is 0.
struct LabelScore {
  double precision = 0;  // correct predictions of the label / its predictions
  double recall = 0;     // correct predictions of the label / its texts
  double f1 = 0;         // 2 precision recall / (precision + recall)
  int64_t support = 0;   // texts that have the label
};

struct ClassificationScores {
  double accuracy = 0;  // share of texts with the right label, in [0, 1]
  double macro_f1 = 0;  // mean F1 of the labels that a text or a prediction has: the others have nothing to be measured
  std::vector<LabelScore> labels;
  /// [right label][prediction] -> texts; empty where there are more than kMostConfusionLabels labels: the matrix grows
  /// with their square.
  std::vector<std::vector<int64_t>> confusion;
};

inline constexpr int64_t kMostConfusionLabels = 1024;

/// Scores as scikit-learn computes them with zero_division=0; the formulas are those of Sokolova and Lapalme 2009,
/// "A systematic analysis of performance measures for classification tasks", tables 2 and 3, with the macro average
/// over F1 (Opitz and Burst 2019, "Macro F1 and Macro F1", equation 2).
///   predictions, references: indices in [0, labels), as many of one as of the other
/// Throws DataError when an index is outside, the numbers differ or there are none.
ClassificationScores classification_scores(std::span<const int32_t> predictions, std::span<const int32_t> references,
                                           int64_t labels);

}  // namespace attune
