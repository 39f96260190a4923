#pragma once
// Trains a model of any architecture and writes the results into a folder:
//
//   config.toml                                  the configuration
//   tokenizer.model (or .json, or one each side) the vocabulary
//   metrics.jsonl, events.out.tfevents.*         what was measured, see docs/file-formats.md
//   checkpoints/step-00001000.safetensors        the last train.keep_checkpoints
//   best/                                        the model that was best in validation, by RunConfig::best_metric()
//   model/                                       what a user should use, written at the end: the mean of the last
//                                                train.average_checkpoints checkpoints where that is on and there are
//                                                two or more, else a copy of best/, else (without validation) the last
//                                                weights, or their moving average

#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "attune/dist/communicator.h"
#include "attune/train/config.h"
#include "attune/train/tasks/corpus_report.h"
#include "attune/train/validation.h"

namespace [[gnu::visibility("default")]] attune {

struct StartReport {
  TransformerConfig model;  // with the vocabularies' sizes and all labels
  int64_t parameters = 0;
  CorpusReport corpus;
  int64_t batches = 0;      // of an epoch, about
  int64_t total_steps = 0;  // an estimate where epochs are the limit; 0: unknown
  int64_t step = 0;         // from which a resumed run goes on
};

/// Sums and rates are over the steps since the last entry of the log.
struct StepReport {
  int64_t step = 0, total_steps = 0;  // 0: unknown
  int64_t epoch = 0;                  // from 1
  double loss = 0;                    // label-smoothed, per prediction
  double nll = 0;                     // per prediction
  double learning_rate = 0;
  double gradient_norm = 0;      // before clipping
  double tokens_per_second = 0;  // of the target, where there are two sides
  double seconds = 0;            // of training since step 0
  bool logged = false;           // whether these numbers are in metrics.jsonl
};

/// Called with the progress of a run, on the thread that runs it.
class TrainingObserver {
 public:
  virtual ~TrainingObserver() = default;
  virtual void on_start(const StartReport&) {}
  virtual void on_step(const StepReport&) {}
  virtual void on_validation(const ValidationReport&) {}
  virtual void on_checkpoint(const std::filesystem::path&) {}
  virtual void on_message(const std::string&) {}
};

enum class StopReason { steps, epochs, minutes, patience, requested };

struct TrainingResult {
  StopReason reason = StopReason::steps;
  int64_t step = 0;
  double seconds = 0;                            // of training, in all parts of the run
  std::optional<int64_t> best_step = {};         // without a value there was no validation
  double best_value = 0;                         // of RunConfig::best_metric()
  std::optional<ValidationReport> outcome = {};  // of model/, where that is a mean of checkpoints
};

class Trainer {
 public:
  /// Once `stop_requested` is true, the current step is finished, a checkpoint is written and run() returns; a
  /// validation that was interrupted is made again when the run is resumed. Both references must outlive this. Throws
  /// ConfigError, and DeviceError when train.device cannot be used here.
  ///
  /// With several ranks, each makes a Trainer with the same configuration and folder, which all must see. With
  /// train.device = "cuda" they divide the GPUs of their machine among themselves. Only the first rank writes and calls
  /// the observer; the others read from the folder. All share a validation. A request to stop at one rank stops all.
  Trainer(RunConfig config, std::filesystem::path run_folder, TrainingObserver& observer,
          const std::atomic<bool>& stop_requested,
          std::shared_ptr<Communicator> communicator = std::make_shared<LocalCommunicator>());

  /// Trains until one of the limits. With `resume` it continues from the newest valid checkpoint, bit for bit as if
  /// there had been no interruption (on several ranks: with train.deterministic_reduction), or begins anew where there
  /// is none. Steps, schedule, validation and the like may have changed; docs/training.md lists what may not. Throws
  /// ConfigError when there are checkpoints and `resume` is false; FileError, for instance when the disk is full (older
  /// checkpoints stay); DataError; and NumericError when a loss, a gradient, or a parameter that is to be validated or
  /// saved is not finite, and then writes nothing. When one rank throws, the others may wait for it forever: its
  /// process has to abort() them.
  TrainingResult run(bool resume);

 private:
  RunConfig config_;
  std::filesystem::path folder_;
  TrainingObserver& observer_;
  const std::atomic<bool>& stop_requested_;
  std::shared_ptr<Communicator> communicator_;
};

}  // namespace attune
