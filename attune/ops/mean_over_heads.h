#pragma once

#include "attune/tensor/tensor.h"

namespace attune {

/// The mean over the heads of the weights of an attention.
///   weights [rows, heads, keys]   returns [rows, keys]
/// Not differentiable. Throws ShapeError.
Tensor mean_over_heads(const Tensor& weights);

}  // namespace attune
