#pragma once

#include <span>

#include "attune/tensor/tensor.h"

namespace attune {

/// Returns the sum of x[i]^2 in float64; the same for any number of threads. x is float32 or float64.
double sum_of_squares(Cpu, const Tensor& x);
double sum_of_squares(Plain, const Tensor& x);

/// sum += the sum of x[i]^2 over several tensors x of one dtype, in float64 and in an order that depends on their sizes
/// alone.
///   sum [1], float64
void add_squares(Cpu, std::span<const Tensor> tensors, const Tensor& sum);
void add_squares(Plain, std::span<const Tensor> tensors, const Tensor& sum);
void add_squares(Cuda, std::span<const Tensor> tensors, const Tensor& sum);

}  // namespace attune
