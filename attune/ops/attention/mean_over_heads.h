#pragma once

#include "attune/tensor/tensor.h"

namespace attune {

/// The mean of attention weights over the heads.
///   weights [rows, heads, keys]   returns [rows, keys]
/// Not differentiable. Throws ShapeError.
Tensor mean_over_heads(const Tensor& weights);

}  // namespace attune
