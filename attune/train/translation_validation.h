#pragma once

#include <memory>
#include <string>
#include <vector>

#include "attune/data/parallel_corpus.h"
#include "attune/models/transformer.h"
#include "attune/train/evaluate.h"
#include "attune/train/tokenizers.h"
#include "attune/train/training_task.h"
#include "attune/train/validation.h"

namespace attune {

/// The special tokens of pairs for a model whose outputs are as `generation` says.
PairFrame pair_frame(const GenerationConfig& generation);

/// The sentence pairs that a translator is validated on. Nothing is left out of them: BLEU compares all lines.
class TranslationValidation {
 public:
  /// Reads data.valid_source and valid_target. Throws DataError, naming the line, for different numbers of lines and
  /// for lines that are too long to be translated.
  TranslationValidation(const RunConfig& config, const TokenizerPair& tokenizers);

  /// Returns the loss of evaluate() and the BLEU of translations by beam search with train.valid_beam_size, in
  /// mteval-v13a tokens or, for a whitespace vocabulary, in its words.
  /// See TrainingTask::validate().
  ValidationReport measure(const std::shared_ptr<Transformer>& model, const ValidationWork& work = {}) const;

  int64_t sentences() const { return static_cast<int64_t>(sources_.size()); }

 private:
  std::vector<std::string> translate(const std::shared_ptr<Transformer>& model, const ValidationWork& work) const;
  void read(const std::string& source_file, const std::string& target_file, size_t limit);

  TokenizerPair tokenizers_;
  GenerationConfig generation_;
  EvaluateOptions evaluate_options_;
  int64_t most_tokens_;
  std::vector<std::string> sources_, references_;
  std::vector<ParallelExample> examples_;
};

}  // namespace attune
