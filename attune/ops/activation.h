#pragma once

#include "attune/tensor/tensor.h"

namespace attune {

/// max(0, x). Any shape; differentiable, with gradient 0 at 0. Keeps its output for the backward pass.
Tensor relu(const Tensor& x);

/// x Phi(x) = x (1 + erf(x / sqrt(2))) / 2, Hendrycks & Gimpel 2016. Any shape; differentiable.
Tensor gelu(const Tensor& x);

}  // namespace attune
