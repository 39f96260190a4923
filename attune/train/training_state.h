#pragma once
// The state of a training run, and the checkpoint that holds it.

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "attune/io/checkpoint.h"
#include "attune/optim/adam.h"
#include "attune/train/log_window.h"
#include "attune/train/tasks/training_task.h"

namespace attune {

/// Everything except tensors that a run needs to continue as if it had never stopped.
struct TrainingState {
  int64_t step = 0;    // updates so far
  int64_t epoch = 0;   // epochs that are complete
  int64_t batch = 0;   // batches of the current epoch that are done
  double seconds = 0;  // of training, without validation and checkpoints
  int64_t tokens = 0;  // that the model has worked on; of the target, where there are two sides
  LogWindow window = {};
  int64_t last_validation = -1;     // step
  int64_t without_improvement = 0;  // validations that count against train.patience
  int64_t best_step = -1;           // -1: none
  double best_value = 0;            // of best_metric
  ValidationMetric best_metric = ValidationMetric::bleu;
  // The least loss of the validations so far. A finite number also before the first one, since JSON has no infinity.
  // Checkpoints of earlier versions lack it: a run that goes on from one begins with this number again.
  double least_loss = std::numeric_limits<double>::max();
};

struct TrainingParts {
  Module& model;
  Adam& adam;
  const RunConfig& config;  // with the model complete
  CorpusSize corpus;
  std::string corpus_sha256 = {};    // see TokenCorpus::sha256()
  Json validation = Json::object();  // see validation_conditions()
  std::string base_sha256 = {};      // of adapters, see InitialModel::sha256_of_samples()
};

/// Parameters, moments, moving average and state. `adam` are the optimizer's states of whole parameters.
Checkpoint make_checkpoint(const TrainingParts& parts, const std::vector<AdamState>& adam, const TrainingState& state);

struct RestoredRun {
  TrainingState state;
  std::vector<std::string> changes;  // one sentence for each setting that changed since the checkpoint
  Json validation = nullptr;         // the conditions of validations until the checkpoint, if they are known
};

/// Fills model and optimizer. Throws ConfigError naming the field when something changed that must not change within
/// one run: [model], [lora] and the model that adapters belong to, the tokenizers, the training text, train.freeze,
/// train.seed, train.batch_tokens, whether there is a moving average. [optimizer], [schedule] and everything else may
/// change; `changes` names what did. The number of ranks may change too: a rank that keeps a part of a state takes that
/// part. Throws FileError when the checkpoint lacks something, or has a value that a field cannot have.
RestoredRun restore_checkpoint(const std::filesystem::path& file, const TrainingParts& parts);

/// The train.precision of the run until this checkpoint; `automatic` where the file does not say it, as files of
/// version 0.1.0 do not. Throws FileError, also for a value that is no precision.
PrecisionChoice precision_of_checkpoint(const std::filesystem::path& file);

template <class FieldVisitor>
void visit_fields(TrainingState& s, FieldVisitor& v) {
  v("step", s.step);
  v("epoch", s.epoch);
  v("batch", s.batch);
  v("seconds", s.seconds);
  v("tokens", s.tokens);
  v("window", s.window);
  v("last_validation", s.last_validation);
  v("without_improvement", s.without_improvement);
  v("best_step", s.best_step);
  v("best_value", s.best_value);
  v("best_metric", s.best_metric);
  v("least_loss", s.least_loss);
}

template <class FieldVisitor>
void visit_fields(CorpusSize& c, FieldVisitor& v) {
  v("examples", c.examples);
  v("tokens", c.tokens);
  v("target_tokens", c.target_tokens);
}

}  // namespace attune
