#pragma once

#include "attune/kernels/activation_kind.h"
#include "attune/tensor/tensor.h"

namespace attune {

/// y [..., d] = activation(gate) * up, for x [..., 2 d] = (gate, up). float32, float64 or bfloat16.
void gated_activation_forward(Cpu, Activation activation, const Tensor& x, const Tensor& y);
void gated_activation_forward(Plain, Activation activation, const Tensor& x, const Tensor& y);
void gated_activation_forward(Cuda, Activation activation, const Tensor& x, const Tensor& y);

/// dx [..., 2 d] = (dy * up * activation'(gate), dy * activation(gate)); all of one dtype.
void gated_activation_backward(Cpu, Activation activation, const Tensor& x, const Tensor& dy, const Tensor& dx);
void gated_activation_backward(Plain, Activation activation, const Tensor& x, const Tensor& dy, const Tensor& dx);
void gated_activation_backward(Cuda, Activation activation, const Tensor& x, const Tensor& dy, const Tensor& dx);

}  // namespace attune
