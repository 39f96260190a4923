#pragma once
// Measurements of a model in training.

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "attune/metrics/classification_scores.h"
#include "attune/metrics/regression_scores.h"
#include "attune/train/config.h"
#include "attune/train/tasks/corpus_loss.h"

namespace [[gnu::visibility("default")]] attune {

struct ValidationReport {
  int64_t step = 0;
  CorpusLoss loss;
  int64_t examples = 0;             // sentences, texts or documents
  double seconds = 0;               // that the validation took
  bool best = false;                // so far, by RunConfig::best_metric()
  int64_t without_improvement = 0;  // validations since the best that count against train.patience

  std::optional<double> bleu = {};  // percent, of the detokenized translations against the lines of valid_target, whose
                                    // subwords are joined too
  std::optional<ClassificationScores> classification = {};  // of a classifier's labels
  std::optional<RegressionScores> regression = {};          // of a regression's numbers
  std::optional<double> bits_per_character = {};            // of a language model whose tokens are characters
  std::optional<double> bits_per_byte = {};                 // of one whose tokens are bytes

  struct Sample {
    std::string source, reference, translation;
  };
  std::vector<Sample> samples = {};  // the first three translations
};

/// The value of a metric, and whether more of it is better. Throws ConfigError when the report does not have it.
double value_of(const ValidationReport& report, ValidationMetric metric);
bool more_is_better(ValidationMetric metric);

/// Names in metrics.jsonl for a model that is the mean of checkpoints: the key of their number, and the prefix of its
/// figures ("averaged_valid_loss").
inline constexpr const char* kAveragedCheckpoints = "averaged_checkpoints";
inline constexpr std::string_view kAveragedPrefix = "averaged_";

/// The numbers of a validation that go into metrics.jsonl: "valid_loss" and so on.
std::vector<std::pair<std::string, double>> validation_scalars(const ValidationReport& report);

}  // namespace attune
