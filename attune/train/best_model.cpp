#include "attune/train/best_model.h"

#include <fmt/format.h>

#include <cmath>

#include "attune/base/fail.h"
#include "attune/io/config_file.h"

namespace attune {
namespace {

// Why the best model so far is not to be used; empty where it is.
std::string reason_to_forget(const std::filesystem::path& best, const RunConfig& config, const TrainingState& state) {
  const ValidationMetric metric = config.best_metric();
  if (state.best_metric != metric)
    return fmt::format("train.best_metric changed from {} to {}", enum_name(state.best_metric), enum_name(metric));
  try {
    check_parameter_file(best, config.model);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

bool take_if_best(const ValidationReport& report, ValidationMetric metric, TrainingState& state) {
  const double value = value_of(report, metric);
  if (!std::isfinite(value))
    fail<NumericError>("step {}: the validation's {} is {}", state.step, enum_name(metric), value);
  state.last_validation = state.step;
  const bool more = more_is_better(metric);
  const bool better = state.best_step < 0 || (more ? value > state.best_value : value < state.best_value);
  const bool equal = more && value == state.best_value;
  // BLEU stays 0 for a long time while a translator learns: another 0 does not say that nothing improves. Nor does
  // another equal value while the loss falls.
  const bool still_learns = more && (state.best_value == 0 || (equal && report.loss.loss < state.least_loss));
  if (better) {
    state.without_improvement = 0;
  } else if (!still_learns) {
    ++state.without_improvement;
  }
  if (report.loss.loss < state.least_loss) state.least_loss = report.loss.loss;
  if (!better && !equal) return false;  // of equal ones the last, which is no improvement
  state.best_step = state.step;
  state.best_value = value;
  state.best_metric = metric;
  return true;
}

std::string forget_lost_best(const std::filesystem::path& best, const RunConfig& config, TrainingState& state) {
  if (state.best_step < 0) return "";
  const std::string reason = reason_to_forget(best, config, state);
  if (reason.empty()) return "";
  const int64_t step = state.best_step;
  state.best_step = state.last_validation = -1;
  state.best_value = 0;
  state.without_improvement = 0;
  state.least_loss = TrainingState{}.least_loss;
  return fmt::format("the best model so far, of step {}, is forgotten: {}", step, reason);
}

}  // namespace attune
