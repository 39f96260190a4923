#include "attune/kernels/adam.h"

#include <algorithm>
#include <cmath>

// Loops over the parameters for devices on which each may be a call of its own.

namespace attune {
namespace {

template <class D>
void one_by_one(D device, std::span<const AdamUpdate> updates, const AdamCondition& condition, double ema_decay,
                AdamStepArguments arguments) {
  const std::span<const double> numbers = condition.numbers.values<double>();
  if (!std::ranges::all_of(numbers, [](double x) { return std::isfinite(x); })) return;
  const double norm = std::sqrt(numbers[0]), most = condition.clip_norm;
  arguments.gradient_scale = most > 0 && norm > most ? most / norm : 1;
  for (const AdamUpdate& u : updates) {
    arguments.weight_decay = u.weight_decay;
    arguments.l2 = u.l2;
    adam_step(device, {.parameter = u.parameter, .gradient = u.gradient, .m = u.m, .v = u.v, .average = u.average},
              ema_decay, arguments);
  }
}

}  // namespace

void adam_steps(Cpu device, std::span<const AdamUpdate> updates, const AdamCondition& condition, double ema_decay,
                const AdamStepArguments& arguments) {
  one_by_one(device, updates, condition, ema_decay, arguments);
}
void adam_steps(Plain device, std::span<const AdamUpdate> updates, const AdamCondition& condition, double ema_decay,
                const AdamStepArguments& arguments) {
  one_by_one(device, updates, condition, ema_decay, arguments);
}

}  // namespace attune
