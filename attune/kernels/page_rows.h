#pragma once
// Rows into the blocks of a cache and out of them.

#include <cstdint>
#include <span>

#include "attune/kernels/pages.h"
#include "attune/tensor/tensor.h"

namespace attune {

/// The row of slots[i] becomes row i of `rows`.
///   rows [n, width], of the dtype of the pages   slots [n], below the capacity
void write_rows(Cpu, const Tensor& rows, std::span<const int32_t> slots, const Pages& pages);
void write_rows(Plain, const Tensor& rows, std::span<const int32_t> slots, const Pages& pages);

/// Row i of `rows` becomes columns [begin, begin + columns) of the row of slots[i].
///   rows [n, columns], of the dtype of the pages   slots [n], below the capacity
void gather_rows(Cpu, const Pages& pages, std::span<const int32_t> slots, int64_t begin, const Tensor& rows);
void gather_rows(Plain, const Pages& pages, std::span<const int32_t> slots, int64_t begin, const Tensor& rows);

}  // namespace attune
