#pragma once

#include <algorithm>
#include <limits>

#include "attune/kernels/gemm/column_groups.h"

namespace attune::cpu {

/// Writes -inf to the rows of a group beyond its columns; y [rows, width].
template <class T>
void fill_beyond(const ColumnGroup& group, T* y, int64_t width) {
  const auto used = static_cast<int64_t>(group.columns.size());
  for (int64_t r = group.begin; used < width && r < group.end; ++r)
    std::fill(y + r * width + used, y + (r + 1) * width, -std::numeric_limits<T>::infinity());
}

}  // namespace attune::cpu
