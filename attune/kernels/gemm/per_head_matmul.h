#pragma once

#include "attune/tensor/tensor.h"

namespace attune {

/// y[r, h] = x[r, h] W_h, where W_h is rows [h * in, (h + 1) * in) of the weight.
///   x [rows, heads, in]   weight [heads * in, out]   y [rows, heads, out]; float32 or float64
void per_head_matmul(Cpu, const Tensor& x, const Tensor& weight, const Tensor& y);
void per_head_matmul(Plain, const Tensor& x, const Tensor& weight, const Tensor& y);
void per_head_matmul(Cuda, const Tensor& x, const Tensor& weight, const Tensor& y);

/// y[r, h] = W_h x[r, h], where W_h is rows [h * out, (h + 1) * out) of the weight.
///   x [rows, heads, in]   weight [heads * out, in]   y [rows, heads, out]
void per_head_matmul_transposed(Cpu, const Tensor& x, const Tensor& weight, const Tensor& y);
void per_head_matmul_transposed(Plain, const Tensor& x, const Tensor& weight, const Tensor& y);
void per_head_matmul_transposed(Cuda, const Tensor& x, const Tensor& weight, const Tensor& y);

}  // namespace attune
