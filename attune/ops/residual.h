#pragma once

#include "attune/ops/dropout.h"
#include "attune/tensor/tensor.h"

namespace [[gnu::visibility("default")]] attune {

/// x + dropout(y), the residual connection of Vaswani et al. 2017, section 5.4. An inactive mask leaves x + y.
///   x, y   the same shape and dtype, or x float32 and y bfloat16; returns the shape and dtype of x
/// Differentiable in x and y; keeps nothing for the backward pass. Throws ShapeError, ConfigError.
Tensor residual_dropout(const Tensor& x, const Tensor& y, const DropoutMask& mask = {});

}  // namespace attune
