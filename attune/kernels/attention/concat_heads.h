#pragma once

#include "attune/tensor/tensor.h"

namespace attune {

/// out[i, h] = a[i, h] followed by b[i, h]; if b has one head, every head gets that one. float32 or float64.
///   a [n, heads, d_a]   b [n, heads or 1, d_b]   out [n, heads, d_a + d_b]
void concat_heads_forward(Cpu, const Tensor& a, const Tensor& b, const Tensor& out);
void concat_heads_forward(Plain, const Tensor& a, const Tensor& b, const Tensor& out);
void concat_heads_forward(Cuda, const Tensor& a, const Tensor& b, const Tensor& out);

/// If b has one head, its gradient is the sum over the heads.
///   d_out [n, heads, d_a + d_b]   da [n, heads, d_a]   db [n, heads or 1, d_b]
void concat_heads_backward(Cpu, const Tensor& d_out, const Tensor& da, const Tensor& db);
void concat_heads_backward(Plain, const Tensor& d_out, const Tensor& da, const Tensor& db);
void concat_heads_backward(Cuda, const Tensor& d_out, const Tensor& da, const Tensor& db);

}  // namespace attune
