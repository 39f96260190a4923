#pragma once

#include "attune/kernels/activation_kind.h"
#include "attune/tensor/tensor.h"

namespace [[gnu::visibility("default")]] attune {

/// activation(gate) * up of a row's two halves, the gate first: with silu SwiGLU, with gelu GEGLU.
///   x [..., 2 d], floating or bfloat16; returns [..., d] of that type
/// Differentiable; keeps its input for the backward pass. Throws ShapeError. Source: Shazeer 2020, equations 5 and 6.
Tensor gated_activation(const Tensor& x, Activation activation);

}  // namespace attune
