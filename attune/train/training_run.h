#pragma once
// The training of a run.

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "attune/dist/communicator.h"
#include "attune/io/checkpoint.h"
#include "attune/optim/adam.h"
#include "attune/optim/schedule.h"
#include "attune/train/batch_prefetch.h"
#include "attune/train/config.h"
#include "attune/train/data_parallel.h"
#include "attune/train/event_log.h"
#include "attune/train/initial_model.h"
#include "attune/train/run_folder.h"
#include "attune/train/tasks/training_task.h"
#include "attune/train/trainer.h"
#include "attune/train/training_plan.h"
#include "attune/train/training_state.h"

namespace attune {

/// A run while it is trained: its parts, and what happens in which order. Trainer is its public side.
class TrainingRun {
 public:
  /// All references must outlive this.
  TrainingRun(const RunConfig& config, const std::filesystem::path& folder, TrainingObserver& observer,
              const std::atomic<bool>& stop, Communicator& communicator);
  /// All that comes before the first step: the newest checkpoint (with `resume`), the task, the model and the files of
  /// the folder. Throws as Trainer::run() does.
  void prepare(bool resume);
  /// Trains until a limit or a request to stop. Throws as Trainer::run() does.
  TrainingResult train();

 private:
  // Before the first step: training_start.cpp.

  std::optional<int64_t> newest_checkpoint(bool resume);
  std::optional<int64_t> step_to_resume(bool resume);
  void resolve_precision(const std::optional<int64_t>& resumed);
  void restore(int64_t step);
  void forget_lost_best(const Json& validation_before);
  void make_task(bool resumes);
  void say_vocabulary();
  void report_start();

  // From then on: training_run.cpp.

  bool stop_agreed();
  void share_state();
  void swap_averages();
  void step();
  void report_step(double learning_rate);
  void log(double learning_rate);
  bool validation_is_due() const {
    return attune::validation_is_due(config_.train, state_) || state_.step == forgotten_at_;
  }
  ValidationReport measure();
  void judge(ValidationReport report);
  bool validate();
  void save();
  std::optional<ValidationReport> write_outcome();
  void set_aside(int64_t step, const std::string& damage);
  std::vector<std::filesystem::path> checkpoints_to_average();
  void save_model(const char* name);
  void load_best();

  TrainingResult result(StopReason reason) const;
  BatchPart batch_part() const { return {.rank = communicator_.rank(), .ranks = communicator_.size()}; }
  double rate_of(int64_t step) const {
    return learning_rate(config_.schedule, step, steps_of_run(), config_.model.d_model);
  }
  int64_t steps_of_run() const { return total_steps(config_.train, state_, task_->batches()); }
  bool validates() const { return task_->corpus().validation_examples > 0; }
  TrainingParts parts() {
    return {task_->model(),         *adam_,      config_, task_->corpus().size, task_->corpus_sha256(),
            validation_conditions_, base_sha256_};
  }

  RunConfig config_;  // with the model complete
  std::filesystem::path folder_;
  TrainingObserver& observer_;
  const std::atomic<bool>& stop_;
  Communicator& communicator_;
  const Device device_;  // of this rank
  const bool is_first_ = communicator_.rank() == 0;
  std::optional<RunFolder> run_folder_;  // of the first rank
  CheckpointFolder checkpoints_;

  std::optional<InitialModel> initial_;
  std::string base_sha256_;             // of the initial model, with adapters
  std::vector<std::string> new_names_;  // of parameters that the initial model does not have
  std::unique_ptr<TrainingTask> task_;
  std::optional<BatchPrefetch> batches_;  // is destroyed before the task that it reads
  std::optional<Adam> adam_;
  std::optional<DataParallel> ranks_;  // where there are several
  std::optional<EventLog> log_;
  TrainingState state_;
  Json validation_conditions_ = Json::object();
  int64_t saved_step_ = -1;  // of the last checkpoint that was written or read
  int64_t saved_validation_ = -1;
  int64_t forgotten_at_ = -1;  // the step of a resumed run that forgot its best model; it is validated again
};

}  // namespace attune
