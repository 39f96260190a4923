#pragma once

#include "attune/tensor/tensor.h"

namespace attune {

/// Each head of a followed by the same head of b; if b has one head, every head gets that one.
///   a [n, heads, d_a]   b [n, heads or 1, d_b]   returns [n, heads, d_a + d_b]
/// Differentiable in both. Throws ShapeError.
Tensor concat_heads(const Tensor& a, const Tensor& b);

}  // namespace attune
