#pragma once

#include "attune/tensor/tensor.h"

namespace attune {

/// x = factor * x, element by element, multiplied in the dtype of x. float32 or float64.
void scale(Cpu, const Tensor& x, double factor);
void scale(Plain, const Tensor& x, double factor);
void scale(Cuda, const Tensor& x, double factor);

}  // namespace attune
