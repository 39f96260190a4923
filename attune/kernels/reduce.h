#pragma once

#include "attune/tensor/tensor.h"

namespace attune {

/// The sum of x[i]^2 in float64; the same whatever the number of threads. float32 or float64.
double sum_of_squares(Cpu, const Tensor& x);
double sum_of_squares(Plain, const Tensor& x);

}  // namespace attune
