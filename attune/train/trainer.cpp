#include "attune/train/trainer.h"

#include "attune/base/parallel.h"
#include "attune/train/training_run.h"

namespace attune {

Trainer::Trainer(RunConfig config, std::filesystem::path run_folder, TrainingObserver& observer,
                 const std::atomic<bool>& stop_requested, std::shared_ptr<Communicator> communicator)
    : config_(std::move(config)),
      folder_(std::move(run_folder)),
      observer_(observer),
      stop_requested_(stop_requested),
      communicator_(std::move(communicator)) {
  config_.validate_for_training();
  check_usable_device(config_);
}

TrainingResult Trainer::run(bool resume) {
  const ThreadScope threads(config_.train.threads);
  TrainingObserver nobody;
  TrainingRun run(config_, folder_, communicator_->rank() == 0 ? observer_ : nobody, stop_requested_, *communicator_);
  run.prepare(resume);
  return run.train();
}

}  // namespace attune
