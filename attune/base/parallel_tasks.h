#pragma once

#include <cstdint>
#include <utility>

#include "attune/base/parallel.h"

namespace attune {

/// Calls body(begin, end) over [0, count) in pieces of at most `grain` tasks, in parallel: parallel_for() for whole
/// tasks, each of which calls operations, where that is for the elements of tensors within one.
template <class Body>
void parallel_tasks(int64_t count, int64_t grain, Body&& body) {
  parallel_for(count, grain, std::forward<Body>(body));
}

}  // namespace attune
