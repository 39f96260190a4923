#pragma once

#include "attune/tensor/tensor.h"

namespace attune {

/// Returns the sum of x[i]^2 in float64; the same for any number of threads. x is float32 or float64.
double sum_of_squares(Cpu, const Tensor& x);
double sum_of_squares(Plain, const Tensor& x);
double sum_of_squares(Cuda, const Tensor& x);

}  // namespace attune
