#pragma once
// Which model of a run was the best in validation so far. It has a folder of its own, best/, and is in no checkpoint.

#include <filesystem>
#include <string>

#include "attune/train/training_state.h"
#include "attune/train/validation.h"

namespace attune {

/// Counts a validation at the step where the run stands. Returns whether its model is the best so far by `metric`; of
/// equal ones, but for losses, the last is, which is no improvement. Where more is better, two kinds of validations do
/// not count against the run: what is still 0, and what equals the best at a lower loss than all before it. Throws
/// ConfigError when the report does not have the metric, NumericError when it is not finite.
bool take_if_best(const ValidationReport& report, ValidationMetric metric, TrainingState& state);

/// For a run that resumes. Forgets the best model if `best` no longer holds one or if another metric decides now: the
/// next validation, at this very step if need be, gives the best model. Returns a message for the user, "" if nothing
/// was forgotten.
std::string forget_lost_best(const std::filesystem::path& best, const RunConfig& config, TrainingState& state);

}  // namespace attune
