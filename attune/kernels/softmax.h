#pragma once

#include "attune/tensor/tensor.h"

namespace attune {

enum class SoftmaxKind { probabilities, logarithms };

/// y = softmax(x) or log(softmax(x)) of each row; y may be x.        x, y [..., columns], float32 or float64
/// A row of only minus infinities gives zeros for the softmax, and minus infinities for its logarithm.
void softmax_forward(Cpu, SoftmaxKind kind, const Tensor& x, const Tensor& y);
void softmax_forward(Plain, SoftmaxKind kind, const Tensor& x, const Tensor& y);
void softmax_forward(Cuda, SoftmaxKind kind, const Tensor& x, const Tensor& y);

/// Computes dx from the output y and dy; dx may be dy.        all [..., columns]
void softmax_backward(Cpu, SoftmaxKind kind, const Tensor& y, const Tensor& dy, const Tensor& dx);
void softmax_backward(Plain, SoftmaxKind kind, const Tensor& y, const Tensor& dy, const Tensor& dx);
void softmax_backward(Cuda, SoftmaxKind kind, const Tensor& y, const Tensor& dy, const Tensor& dx);

}  // namespace attune
