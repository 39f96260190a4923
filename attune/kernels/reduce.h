#pragma once

#include <span>

#include "attune/tensor/tensor.h"

namespace attune {

/// Returns the sum of x[i]^2 in float64; the same for any number of threads. x is float32 or float64.
double sum_of_squares(Cpu, const Tensor& x);
double sum_of_squares(Plain, const Tensor& x);
double sum_of_squares(Cuda, const Tensor& x);

/// The sum over several tensors of one dtype, each summed up for itself, added in their order.
double sum_of_squares(Cpu, std::span<const Tensor> tensors);
double sum_of_squares(Plain, std::span<const Tensor> tensors);
double sum_of_squares(Cuda, std::span<const Tensor> tensors);

}  // namespace attune
