#pragma once

#include "attune/tensor/tensor.h"

namespace attune {

/// Returns the sum over all elements of (x - target)^2, in float64.   x, target: one shape; float32 or float64
double squared_error_forward(Cpu, const Tensor& x, const Tensor& target);
double squared_error_forward(Plain, const Tensor& x, const Tensor& target);
double squared_error_forward(Cuda, const Tensor& x, const Tensor& target);

/// dx = factor * 2 (x - target), element by element.
void squared_error_backward(Cpu, const Tensor& x, const Tensor& target, double factor, const Tensor& dx);
void squared_error_backward(Plain, const Tensor& x, const Tensor& target, double factor, const Tensor& dx);
void squared_error_backward(Cuda, const Tensor& x, const Tensor& target, double factor, const Tensor& dx);

}  // namespace attune
