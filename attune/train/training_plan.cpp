#include "attune/train/training_plan.h"

#include <algorithm>

#include "attune/base/fail.h"

namespace attune {
namespace {

constexpr int64_t kMostSteps = int64_t{1} << 53;  // beyond this, numbers of steps are no longer told apart

bool at_epoch_end(const TrainingState& state) {
  return state.step > 0 && state.batch == 0;
}

}  // namespace

bool validation_is_due(const TrainConfig& train, const TrainingState& state) {
  const int64_t every = train.valid_every;
  return every > 0 ? state.step > 0 && state.step % every == 0 : at_epoch_end(state);
}

bool checkpoint_is_due(const TrainConfig& train, const TrainingState& state) {
  const int64_t every = train.checkpoint_every, epochs = train.checkpoint_every_epochs;
  if (epochs > 0 && at_epoch_end(state) && state.epoch % epochs == 0) return true;
  return every > 0 ? state.step > 0 && state.step % every == 0 : validation_is_due(train, state);
}

std::optional<StopReason> limit_reached(const TrainConfig& train, const TrainingState& state) {
  if (train.patience > 0 && state.without_improvement >= train.patience) return StopReason::patience;
  if (train.steps > 0 && state.step >= train.steps) return StopReason::steps;
  if (train.epochs > 0 && state.epoch >= train.epochs) return StopReason::epochs;
  if (train.max_minutes > 0 && state.seconds >= 60 * train.max_minutes) return StopReason::minutes;
  return std::nullopt;
}

int64_t total_steps(const TrainConfig& train, const TrainingState& state, int64_t batches) {
  if (train.epochs == 0) return train.steps;
  // Epochs differ by a batch or two: the current one stands for all that follow.
  const int64_t per_epoch = (batches + train.accumulate - 1) / train.accumulate;
  const int64_t of_epoch = (state.batch + train.accumulate - 1) / train.accumulate;
  const int64_t epochs_left = std::max<int64_t>(0, train.epochs - state.epoch);
  const int64_t steps_left = std::min(epochs_left, kMostSteps / std::max<int64_t>(1, per_epoch)) * per_epoch;
  const int64_t by_epochs = state.step + steps_left - of_epoch;
  return train.steps > 0 ? std::min(train.steps, by_epochs) : by_epochs;
}

void check_length(const RunConfig& config, int64_t total_steps) {
  const ScheduleConfig& schedule = config.schedule;
  if (schedule.ends() && total_steps <= schedule.warmup_steps)
    fail<ConfigError>(
        "train.epochs = {}: these are {} steps, and schedule.kind = \"{}\" needs more than "
        "schedule.warmup_steps = {}",
        config.train.epochs, total_steps, enum_name(schedule.kind), schedule.warmup_steps);
}

}  // namespace attune
