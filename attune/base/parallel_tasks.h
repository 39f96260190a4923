#pragma once

#include <cstdint>
#include <utility>

#include "attune/base/parallel.h"

namespace attune {

/// Calls body(begin, end) in parallel for pieces of [0, count) of at most `grain` tasks. For whole tasks, each of which
/// calls operations; parallel_for() is for the elements of tensors within one operation.
template <class Body>
void parallel_tasks(int64_t count, int64_t grain, Body&& body) {
  parallel_for(count, grain, std::forward<Body>(body));
}

}  // namespace attune
