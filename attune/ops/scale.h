#pragma once

#include "attune/tensor/tensor.h"

namespace [[gnu::visibility("default")]] attune {

/// factor * x, element by element; x itself if the factor is 1. float32 or float64. Differentiable.
Tensor scaled(const Tensor& x, double factor);

}  // namespace attune
