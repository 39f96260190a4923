#pragma once

#include "attune/tensor/tensor.h"

namespace attune {

/// sum = the sum over all elements of (x - target)^2.
///   x, target: one shape; float32 or float64   sum [1], float64
void squared_error_forward(Cpu, const Tensor& x, const Tensor& target, const Tensor& sum);
void squared_error_forward(Plain, const Tensor& x, const Tensor& target, const Tensor& sum);
void squared_error_forward(Cuda, const Tensor& x, const Tensor& target, const Tensor& sum);

/// dx = factor * 2 (x - target), element by element.
void squared_error_backward(Cpu, const Tensor& x, const Tensor& target, double factor, const Tensor& dx);
void squared_error_backward(Plain, const Tensor& x, const Tensor& target, double factor, const Tensor& dx);
void squared_error_backward(Cuda, const Tensor& x, const Tensor& target, double factor, const Tensor& dx);

}  // namespace attune
