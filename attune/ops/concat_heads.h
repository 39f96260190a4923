#pragma once

#include "attune/tensor/tensor.h"

namespace attune {

/// a and b side by side in each head; a b with one head is given to every head.
///   a [n, heads, d_a]   b [n, heads or 1, d_b]   returns [n, heads, d_a + d_b]
/// Differentiable in both. Throws ShapeError.
Tensor concat_heads(const Tensor& a, const Tensor& b);

}  // namespace attune
