#pragma once
// Sums over rows in the memory of the CPU, for kernels that form partial sums themselves.

#include <algorithm>
#include <cstdint>

namespace attune::cpu {

/// column_sums() of attune/kernels/gemm/column_sums.h on pointers: x [rows, columns], out [columns].
void column_sums(const float* x, int64_t rows, int64_t columns, float* out, bool accumulate);
void column_sums(const double* x, int64_t rows, int64_t columns, double* out, bool accumulate);

/// Returns how many rows form a block with partial sums of its own: there are enough blocks for the threads of a large
/// machine, and few enough to add them up fast.
inline int64_t column_block_rows(int64_t rows) {
  return std::max<int64_t>(64, (rows + 63) / 64);
}

}  // namespace attune::cpu
