#pragma once
// Which model of a run was the best in validation so far. It has a folder of its own, best/, and is in no checkpoint.

#include <filesystem>
#include <string>

#include "attune/train/training_state.h"
#include "attune/train/validation.h"

namespace attune {

/// Counts a validation at the step where the run stands. Returns whether its model is the best so far by `metric`.
/// Throws ConfigError when the report does not have the metric.
bool take_if_best(const ValidationReport& report, ValidationMetric metric, TrainingState& state);

/// For a run that resumes. Where `best` no longer holds a model, or where another metric now says which is the best,
/// the run goes on without: what is validated next, at this very step if need be, is the best. Returns what to tell
/// people, nothing where the best model stays.
std::string forget_lost_best(const std::filesystem::path& best, const RunConfig& config, TrainingState& state);

}  // namespace attune
