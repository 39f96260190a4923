#pragma once
// When a run validates, writes a checkpoint and ends, by its configuration and its state.

#include <cstdint>
#include <optional>

#include "attune/train/config.h"
#include "attune/train/trainer.h"
#include "attune/train/training_state.h"

namespace attune {

/// Whether the run validates at the step where it stands: every train.valid_every steps, or after each epoch.
bool validation_is_due(const TrainConfig& train, const TrainingState& state);

/// Whether it writes a checkpoint: every train.checkpoint_every steps or train.checkpoint_every_epochs epochs; without
/// the former, with each validation.
bool checkpoint_is_due(const TrainConfig& train, const TrainingState& state);

/// The limit at which the run ends here, if there is one.
std::optional<StopReason> limit_reached(const TrainConfig& train, const TrainingState& state);

/// Updates of the whole run, estimated from the number of batches in the current epoch where epochs are the limit; 0:
/// unknown.
int64_t total_steps(const TrainConfig& train, const TrainingState& state, int64_t batches);

/// Throws ConfigError where a schedule that ends at the last step (cosine, linear) has no step after its warm-up.
void check_length(const RunConfig& config, int64_t total_steps);

}  // namespace attune
