#pragma once
// The learning rate as a function of the step.

#include <cstdint>

#include "attune/optim/config.h"

namespace [[gnu::visibility("default")]] attune {

/// The learning rate of `step`, which counts from 1, with w = warmup_steps and p = peak():
///   noam          p * d_model^-0.5 * min(step^-0.5, step * w^-1.5)         Vaswani et al. 2017, equation 3
///   inverse_sqrt  p * sqrt(w / step)                                       noam's decay from the peak p, as in fairseq
///   cosine        from p to final_learning_rate at total_steps             Loshchilov & Hutter 2017, equation 5
///   linear        the same along a straight line
///   constant      p
/// All but noam are p * step / w while step < w. After total_steps the last rate stays.
/// Throws ConfigError when warmup_steps is negative, or 0 for noam and inverse_sqrt, whose decay depends on it; for
/// noam also when d_model is below 1.
double learning_rate(const ScheduleConfig& schedule, int64_t step, int64_t total_steps, int64_t d_model);

}  // namespace attune
