#pragma once

#include "attune/tensor/tensor.h"

namespace attune {

/// y = x, rounded to the nearest.        x float32, y bfloat16, the same number of elements
void to_bfloat16(Cpu, const Tensor& x, const Tensor& y);
void to_bfloat16(Plain, const Tensor& x, const Tensor& y);
void to_bfloat16(Cuda, const Tensor& x, const Tensor& y);

/// y = x.        x bfloat16, y float32, the same number of elements
void widen(Cpu, const Tensor& x, const Tensor& y);
void widen(Plain, const Tensor& x, const Tensor& y);
void widen(Cuda, const Tensor& x, const Tensor& y);

}  // namespace attune
