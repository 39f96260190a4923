#include "attune/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "attune/base/fail.h"

namespace attune {

double learning_rate(const ScheduleConfig& schedule, int64_t step, int64_t total_steps, int64_t d_model) {
  if (schedule.warmup_steps < schedule.least_warmup())
    fail<ConfigError>("warmup_steps = {}: the schedule \"{}\" needs at least {}", schedule.warmup_steps,
                      enum_name(schedule.kind), schedule.least_warmup());
  if (schedule.kind == ScheduleKind::noam && d_model < 1)
    fail<ConfigError>("d_model = {}: the schedule \"noam\" needs at least 1", d_model);
  const double peak = schedule.peak();
  const auto at = static_cast<double>(std::max<int64_t>(step, 1));
  const auto warmup = static_cast<double>(schedule.warmup_steps);
  if (schedule.kind == ScheduleKind::noam)
    return peak / std::sqrt(static_cast<double>(d_model)) *
           std::min(1 / std::sqrt(at), at / (warmup * std::sqrt(warmup)));
  if (at < warmup) return peak * at / warmup;
  if (schedule.kind == ScheduleKind::constant) return peak;
  if (schedule.kind == ScheduleKind::inverse_sqrt) return peak * std::sqrt(warmup / at);

  const double last = schedule.final_learning_rate;
  const double length = static_cast<double>(total_steps) - warmup;
  const double done = length > 0 ? std::min((at - warmup) / length, 1.0) : 1.0;
  const double share = schedule.kind == ScheduleKind::cosine ? (1 + std::cos(std::numbers::pi * done)) / 2 : 1 - done;
  return last + (peak - last) * share;
}

}  // namespace attune
