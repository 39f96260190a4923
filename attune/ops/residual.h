#pragma once

#include "attune/ops/dropout.h"
#include "attune/tensor/tensor.h"

namespace [[gnu::visibility("default")]] attune {

/// x + dropout(y), the residual connection of Vaswani et al. 2017, section 5.4. An inactive mask leaves x + y.
///   x, y   the same shape and dtype, or y bfloat16 beside a float32 x; returns x's
/// Differentiable in x and y; nothing is kept for the backward pass. Throws ShapeError, ConfigError.
Tensor residual_dropout(const Tensor& x, const Tensor& y, const DropoutMask& mask = {});

}  // namespace attune
