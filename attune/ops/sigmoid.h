#pragma once

#include "attune/tensor/tensor.h"

namespace attune {

/// 1 / (1 + e^-x). Any shape with a dimension, float32 or float64; differentiable. Throws ShapeError.
Tensor sigmoid(const Tensor& x);

}  // namespace attune
