#include "attune/kernels/adam.h"

// Loops over the parameters for devices on which each may be a call of its own.

namespace attune {
namespace {

template <class D>
void one_by_one(D device, std::span<const AdamUpdate> updates, double ema_decay, AdamStepArguments arguments) {
  for (const AdamUpdate& u : updates) {
    arguments.weight_decay = u.weight_decay;
    arguments.l2 = u.l2;
    adam_step(device, {.parameter = u.parameter, .gradient = u.gradient, .m = u.m, .v = u.v, .average = u.average},
              ema_decay, arguments);
  }
}

}  // namespace

void adam_steps(Cpu device, std::span<const AdamUpdate> updates, double ema_decay, const AdamStepArguments& arguments) {
  one_by_one(device, updates, ema_decay, arguments);
}
void adam_steps(Plain device, std::span<const AdamUpdate> updates, double ema_decay,
                const AdamStepArguments& arguments) {
  one_by_one(device, updates, ema_decay, arguments);
}

}  // namespace attune
