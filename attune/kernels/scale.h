#pragma once

#include "attune/tensor/tensor.h"

namespace attune {

/// x *= factor, element by element; float32 or float64.
void scale_in_place(Cpu, const Tensor& x, double factor);
void scale_in_place(Plain, const Tensor& x, double factor);

}  // namespace attune
