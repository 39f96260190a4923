#pragma once

#include "attune/tensor/tensor.h"

namespace attune {

enum class SoftmaxKind { probabilities, logarithms };

/// y = softmax(x) or log(softmax(x)) of each row; y may be x.        x, y [..., columns], float32 or float64
/// A row of minus infinities gives zeros, or itself.
void softmax_forward(Cpu, SoftmaxKind kind, const Tensor& x, const Tensor& y);
void softmax_forward(Plain, SoftmaxKind kind, const Tensor& x, const Tensor& y);

/// dx from the output y; dx may be dy.        all [..., columns]
void softmax_backward(Cpu, SoftmaxKind kind, const Tensor& y, const Tensor& dy, const Tensor& dx);
void softmax_backward(Plain, SoftmaxKind kind, const Tensor& y, const Tensor& dy, const Tensor& dx);

}  // namespace attune
