#pragma once

#include <algorithm>
#include <cstdint>

#include "attune/tensor/device.h"

namespace attune {

/// out[j] = the sum of column j of `rows` [rows, columns], or += when `accumulate`. The same whatever the number of
/// threads: blocks of rows are fixed, and their sums are added in order.
void column_sums(Cpu, const float* x, int64_t rows, int64_t columns, float* out, bool accumulate);
void column_sums(Cpu, const double* x, int64_t rows, int64_t columns, double* out, bool accumulate);

/// Rows of a block whose partial sums stay apart: enough to fill the threads of a large machine, few enough to add up
/// fast.
inline int64_t column_block_rows(int64_t rows) {
  return std::max<int64_t>(64, (rows + 63) / 64);
}

}  // namespace attune
