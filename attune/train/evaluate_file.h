#pragma once
// How well a language model predicts the text of a file.

#include <atomic>
#include <cstdint>
#include <filesystem>

#include "attune/base/execution.h"
#include "attune/hub/open_folder.h"
#include "attune/text/text_unit.h"
#include "attune/train/tasks/corpus_loss.h"

namespace attune {

struct FileEvaluation {
  CorpusLoss loss;
  TextUnit text_unit = TextUnit::stream;
  int64_t documents = 0, bytes = 0, context = 0, stride = 0;

  /// For each byte of the text as it is in the file, or of its answers alone where it has prompts and answers. Models
  /// with different vocabularies can be compared by it.
  double bits_per_byte() const;
};

struct FileEvaluationOptions {
  int64_t stride = 0;  // tokens from one window to the next; 0: the model's context
  ProductPrecision precision = ProductPrecision::float32;
  Device device = {};
  const std::atomic<bool>* interrupt = nullptr;  // once true, evaluate_file() throws Interrupted
};

/// The weights with which a model is measured: those of weights_for() where products are in bfloat16 or the folder has
/// bfloat16, else float32 tensors.
LoadedWeights weights_to_measure(const OpenedFolder& model, ProductPrecision precision, const Device& device);

/// Reads the file, plain or gzip, as the model's training text was read (its text_unit), and predicts each token from
/// those before it in windows of the model's context. Throws ConfigError for a stride that is not from 1 to the
/// context, DataError when there is nothing to predict, NumericError naming the file, and which of its texts unless it
/// is a stream, when the loss is not finite, FileError for a pipe, since the file is read twice, and what
/// load_language_model() and load_text() throw.
FileEvaluation evaluate_file(const OpenedFolder& model, const std::filesystem::path& file,
                             const FileEvaluationOptions& options = {});

}  // namespace attune
