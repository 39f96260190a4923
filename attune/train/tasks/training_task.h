#pragma once
// A model, the text it learns from and the text it is measured on. The trainer knows nothing else about an
// architecture.

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "attune/data/batch_part.h"
#include "attune/dist/communicator.h"
#include "attune/nn/module.h"
#include "attune/train/config.h"
#include "attune/train/tasks/corpus_report.h"
#include "attune/train/update.h"
#include "attune/train/validation.h"

namespace attune {

/// Which ranks validate, and what ends it.
struct ValidationWork {
  const std::atomic<bool>* interrupt = nullptr;  // once true on one rank, validate() throws Interrupted on all
  Communicator* ranks = nullptr;                 // that share the work; null: this process does all of it
};

class TrainingTask {
 public:
  virtual ~TrainingTask() = default;

  virtual Module& model() = 0;
  virtual const TransformerConfig& model_config() const = 0;  // with the vocabularies' sizes and all labels
  virtual const CorpusReport& corpus() const = 0;
  virtual const std::string& corpus_sha256() const = 0;  // of the training text, see TokenCorpus::sha256()

  /// Forms the batches of an epoch, a pure function of the text, the configuration and the number, from 0.
  virtual void begin_epoch(int64_t epoch) = 0;
  virtual int64_t batches() const = 0;  // of the epoch
  /// Batch `index` of the epoch. `forward` is the number of the forward pass: everything random in the batch is a pure
  /// function of it and train.seed, except word dropout, which differs between parts. When several ranks work on a
  /// batch, it has only the examples of `part`. The batch refers to the task. The trainer calls this on another thread
  /// while it computes, validates or saves, but not during begin_epoch().
  virtual TrainingBatch batch(int64_t index, uint64_t forward, const BatchPart& part = {}) const = 0;

  /// Measures the model as it is now on the validation text, without dropout. Only where corpus().validation_examples
  /// is above 0. Where ranks share the work, all of them call this; the report is complete on rank 0. Throws
  /// Interrupted.
  virtual ValidationReport validate(const ValidationWork& work = {}) = 0;

  /// Writes the model folder. Throws FileError.
  virtual void save_model(const std::filesystem::path& folder) = 0;
  /// Writes only the tokenizers, for a resumed run. Throws FileError.
  virtual void save_tokenizers(const std::filesystem::path& folder) const = 0;
};

/// Reads and encodes the text and builds the model of config.model.architecture. A run that resumes takes the
/// tokenizers of its folder, which has to be there. Throws ConfigError, DataError and FileError.
std::unique_ptr<TrainingTask> make_training_task(const RunConfig& config, const std::filesystem::path& run_folder,
                                                 bool resumes);

}  // namespace attune
