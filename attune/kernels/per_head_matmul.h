#pragma once

#include "attune/tensor/tensor.h"

namespace attune {

/// y[r, h] = x[r, h] W_h, each head with its own rows of the weight.
///   x [rows, heads, in]   weight [heads * in, out]   y [rows, heads, out]; float32 or float64
void per_head_matmul(Cpu, const Tensor& x, const Tensor& weight, const Tensor& y);
void per_head_matmul(Plain, const Tensor& x, const Tensor& weight, const Tensor& y);

/// y[r, h] = W_h x[r, h].
///   x [rows, heads, in]   weight [heads * out, in]   y [rows, heads, out]
void per_head_matmul_transposed(Cpu, const Tensor& x, const Tensor& weight, const Tensor& y);
void per_head_matmul_transposed(Plain, const Tensor& x, const Tensor& weight, const Tensor& y);

}  // namespace attune
