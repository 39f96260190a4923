#pragma once

#include "attune/tensor/tensor.h"

namespace attune {

/// y = 1 / (1 + e^-x), element by element; y may be x. float32 or float64.
void sigmoid_forward(Cpu, const Tensor& x, const Tensor& y);
void sigmoid_forward(Plain, const Tensor& x, const Tensor& y);
void sigmoid_forward(Cuda, const Tensor& x, const Tensor& y);

/// dx = dy y (1 - y) from the output y; dx may be dy.
void sigmoid_backward(Cpu, const Tensor& y, const Tensor& dy, const Tensor& dx);
void sigmoid_backward(Plain, const Tensor& y, const Tensor& dy, const Tensor& dx);
void sigmoid_backward(Cuda, const Tensor& y, const Tensor& dy, const Tensor& dx);

}  // namespace attune
