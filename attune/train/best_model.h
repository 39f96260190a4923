#pragma once
// Which model of a run was the best in validation so far. It has a folder of its own, best/, and is in no checkpoint.

#include <filesystem>
#include <string>

#include "attune/train/training_state.h"
#include "attune/train/validation.h"

namespace attune {

/// Counts a validation at the step where the run stands. Returns whether its model is the best so far by `metric`.
/// Where more is better, a model that equals the best one takes its place, which is no improvement; and two kinds of
/// validations without improvement do not count towards train.patience: those while the best value is 0, and those that
/// equal the best at a lower loss than all before. Throws ConfigError when the report does not have the metric,
/// NumericError when it is not finite.
bool take_if_best(const ValidationReport& report, ValidationMetric metric, TrainingState& state);

/// What the figures of a validation depend on beside the model: settings, and a digest of the text. Figures can be
/// compared where this is equal; a checkpoint of an earlier version may lack some. Throws FileError.
Json validation_conditions(const RunConfig& config);

struct ValidationConditions {
  Json before;  // of the run until now; null where they are not known
  Json now;
};

/// For a run that resumes. Forgets the best model if `best` no longer holds one, or with adapters no longer has them in
/// a folder of their own, if another metric decides now, or if the conditions of validations changed. Conditions that
/// `before` lacks count as unchanged. The next validation gives the best model; the run validates the step where it
/// stands. Returns a message for the user, "" if nothing was forgotten.
std::string forget_lost_best(const std::filesystem::path& best, const RunConfig& config,
                             const ValidationConditions& conditions, TrainingState& state);

/// Writes beside the best model of which step it is.
void write_best_step(const std::filesystem::path& best, const TrainingState& state);
/// Returns a message for the user where the model in `best` is of another step than the state says, else "". A part of
/// the run that was given up, because it was resumed from an earlier checkpoint, may have written it.
std::string other_best_step(const std::filesystem::path& best, const TrainingState& state);

}  // namespace attune
