#pragma once
// Writes rows into the blocks of a cache and gathers rows from them.

#include <cstdint>
#include <span>

#include "attune/kernels/attention/pages.h"
#include "attune/tensor/tensor.h"

namespace attune {

/// Copies row i of `rows` to slots[i].
///   rows [n, width], of the dtype of the pages   slots [n], below the capacity
void write_rows(Cpu, const Tensor& rows, std::span<const int32_t> slots, const Pages& pages);
void write_rows(Plain, const Tensor& rows, std::span<const int32_t> slots, const Pages& pages);
void write_rows(Cuda, const Tensor& rows, std::span<const int32_t> slots, const Pages& pages);

/// Copies columns [begin, begin + columns) of slots[i] to row i of `rows`.
///   rows [n, columns], of the dtype of the pages   slots [n], below the capacity
void gather_rows(Cpu, const Pages& pages, std::span<const int32_t> slots, int64_t begin, const Tensor& rows);
void gather_rows(Plain, const Pages& pages, std::span<const int32_t> slots, int64_t begin, const Tensor& rows);
void gather_rows(Cuda, const Pages& pages, std::span<const int32_t> slots, int64_t begin, const Tensor& rows);

}  // namespace attune
