#pragma once
// Where a head of a row stands.

#include <cstdint>

#include "attune/kernels/attention/head_columns.h"

namespace attune::plain {

/// Returns the first number of a head of a row.
template <class T>
T* head_of(const HeadColumns& part, int64_t row, int64_t head) {
  return part.x.data<T>() + row * part.x.size(1) + part.column + head * part.d;
}

}  // namespace attune::plain
