#pragma once

#include "attune/kernels/activation_kind.h"
#include "attune/tensor/tensor.h"

namespace attune {

/// y = activation(x), element by element; y may be x. float32, float64 or bfloat16.
void activation_forward(Cpu, Activation activation, const Tensor& x, const Tensor& y);
void activation_forward(Plain, Activation activation, const Tensor& x, const Tensor& y);
void activation_forward(Cuda, Activation activation, const Tensor& x, const Tensor& y);

/// dx = dy * activation'(...); dx may be dy. `saved` is the input of the forward pass; for relu input or output, since
/// both have the same sign. float32 or float64.
void activation_backward(Cpu, Activation activation, const Tensor& saved, const Tensor& dy, const Tensor& dx);
void activation_backward(Plain, Activation activation, const Tensor& saved, const Tensor& dy, const Tensor& dx);
void activation_backward(Cuda, Activation activation, const Tensor& saved, const Tensor& dy, const Tensor& dx);

}  // namespace attune
