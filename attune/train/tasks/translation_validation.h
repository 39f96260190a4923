#pragma once

#include <memory>
#include <string>
#include <vector>

#include "attune/data/parallel_corpus.h"
#include "attune/models/transformer.h"
#include "attune/train/evaluate.h"
#include "attune/train/tasks/training_task.h"
#include "attune/train/tokenizers.h"
#include "attune/train/validation.h"

namespace attune {

/// The special tokens of pairs for a model whose outputs are as `generation` says.
PairFrame pair_frame(const GenerationConfig& generation);

/// The sentence pairs that a translator is validated on. Of files for validation, all pairs; of pairs that are held out
/// of the training text, those that are neither empty nor too long for training.
class TranslationValidation {
 public:
  /// Reads data.valid_source and valid_target, or the share data.valid_fraction of the training text. Throws DataError
  /// for different numbers of lines, for lines that are too long to be translated, naming the line, and where there is
  /// no pair.
  TranslationValidation(const RunConfig& config, const TokenizerPair& tokenizers);

  /// Returns the loss of evaluate() and the BLEU of translations by beam search with train.valid_beam_size, in
  /// mteval-v13a tokens or, for a whitespace vocabulary, in its words. Where the text is cut into subwords
  /// (data.subword_marker), references are joined to words again, as translations are.
  /// See TrainingTask::validate().
  ValidationReport measure(const std::shared_ptr<Transformer>& model, const ValidationWork& work = {}) const;

  int64_t sentences() const { return static_cast<int64_t>(sources_.size()); }

 private:
  std::vector<std::string> translate(const std::shared_ptr<Transformer>& model, const ValidationWork& work) const;
  ParallelExample encode(const std::string& source, const std::string& target) const;
  void add(ParallelExample example, const std::string& source, const std::string& target);
  void read_files(const DataConfig& data);
  void read_held_out(const DataConfig& data);

  TokenizerPair tokenizers_;
  GenerationConfig generation_;
  EvaluateOptions evaluate_options_;
  int64_t most_tokens_, longest_sequence_;
  size_t most_sentences_;
  std::vector<std::string> sources_, references_;  // as they are read; references with subwords joined
  std::vector<ParallelExample> examples_;
};

}  // namespace attune
