#pragma once

#include <span>

#include "attune/kernels/gemm/column_groups.h"
#include "attune/tensor/tensor.h"

namespace attune {

/// y[r, j] = x[r] . weight[c] + bias[c] with c = columns[j] of the group of row r, and -inf for j beyond its columns.
///   x [rows, in]   weight [out, in]   bias [out] or undefined   y [rows, width]; float32 or float64
/// The weight may be bfloat16 where all else is float32: its numbers are widened. In float32 the results are bitwise
/// those of panel_linear() with the same numbers.
void linear_columns(Cpu, const Tensor& x, const Tensor& weight, const Tensor& bias, std::span<const ColumnGroup> groups,
                    const Tensor& y);
void linear_columns(Plain, const Tensor& x, const Tensor& weight, const Tensor& bias,
                    std::span<const ColumnGroup> groups, const Tensor& y);
void linear_columns(Cuda, const Tensor& x, const Tensor& weight, const Tensor& bias,
                    std::span<const ColumnGroup> groups, const Tensor& y);

}  // namespace attune
