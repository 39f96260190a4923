#pragma once
// Runs a kernel on each instruction set that it was compiled for and this machine has.

#include <hwy/highway.h>

#include <utility>

#include "attune/base/parallel.h"

namespace attune {

/// Calls f(name) once for each target, the scalar fallback included; the best one is chosen again afterwards.
template <class F>
void for_each_target(F&& f) {
  struct Reset {
    ~Reset() {
      hwy::SetSupportedTargetsForTest(0);
      hwy::GetChosenTarget().DeInit();
    }
  } reset;
  const int64_t supported = hwy::SupportedTargets() & HWY_TARGETS;
  for (int64_t rest = supported | HWY_STATIC_TARGET; rest != 0; rest &= rest - 1) {
    const int64_t target = rest & ~(rest - 1);
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().DeInit();
    f(hwy::TargetName(target));
  }
}

/// f() with one thread and with two, in that order.
template <class F>
auto with_one_and_two_threads(F&& f) {
  const auto with = [&](int threads) {
    const ThreadScope scope(threads);
    return f();
  };
  auto one = with(1);
  return std::pair(std::move(one), with(2));
}

}  // namespace attune
