#pragma once
// What a model in training is measured by.

#include <memory>
#include <string>
#include <vector>

#include "attune/train/config.h"
#include "attune/train/evaluate.h"
#include "attune/train/tokenizers.h"

namespace attune {

struct ValidationReport {
  int64_t step = 0;
  CorpusLoss loss;
  double bleu = 0;  // percent, of the detokenized translations against the lines of valid_target
  int64_t sentences = 0;
  double seconds = 0;               // that the validation took
  bool best = false;                // so far, by train.best_metric
  int64_t without_improvement = 0;  // validations since the best

  struct Sample {
    std::string source, reference, translation;
  };
  std::vector<Sample> samples = {};  // the first three
};

/// The validation text. Nothing is left out of it: BLEU compares all lines.
class Validation {
 public:
  /// Reads data.valid_source and valid_target. Throws DataError, naming the line, for different numbers of lines and
  /// for lines that are too long to be translated.
  Validation(const RunConfig& config, const TokenizerPair& tokenizers);

  /// Loss as evaluate() gives it; BLEU of what beam search with train.valid_beam_size finds, in mteval-v13a tokens, or
  /// for a whitespace vocabulary in its words. Takes the model into evaluation mode.
  ValidationReport measure(const std::shared_ptr<Transformer>& model) const;

  int64_t sentences() const { return static_cast<int64_t>(sources_.size()); }

 private:
  void read(const std::string& source_file, const std::string& target_file, size_t limit);

  TokenizerPair tokenizers_;
  GenerationConfig generation_;
  EvaluateOptions evaluate_options_;
  int64_t most_tokens_;
  std::vector<std::string> sources_, references_;
  std::vector<ParallelExample> examples_;
};

}  // namespace attune
