#pragma once

#include "attune/kernels/dropout_mask.h"
#include "attune/tensor/tensor.h"

namespace attune {

/// out = dropout(y), or x + dropout(y) when x is defined; all [..., columns]. An inactive mask keeps everything. All
/// have the same dtype, float32 or float64, or
///   x float32, y bfloat16, out float32        without x: y float32 or bfloat16, out bfloat16
void dropout_rows(Cpu, const Tensor& x, const Tensor& y, const Tensor& out, const DropoutMask& mask);
void dropout_rows(Plain, const Tensor& x, const Tensor& y, const Tensor& out, const DropoutMask& mask);
void dropout_rows(Cuda, const Tensor& x, const Tensor& y, const Tensor& out, const DropoutMask& mask);

}  // namespace attune
