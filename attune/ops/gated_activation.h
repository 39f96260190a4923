#pragma once

#include "attune/kernels/activation_kind.h"
#include "attune/tensor/tensor.h"

namespace [[gnu::visibility("default")]] attune {

/// activation(gate) * up, where a row of x is (gate, up). With silu this is SwiGLU, with gelu GEGLU.
///   x [..., 2 d], floating or bfloat16; returns [..., d] of the same dtype
/// Differentiable; keeps its input for the backward pass. Throws ShapeError. Source: Shazeer 2020, equations 5 and 6.
Tensor gated_activation(const Tensor& x, Activation activation);

}  // namespace attune
