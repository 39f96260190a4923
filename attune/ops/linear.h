#pragma once

#include "attune/ops/matmul_kernel.h"
#include "attune/tensor/tensor.h"

namespace attune {

/// activation(x weight^T + bias), with bias and activation in the matrix product's epilogue.
///   x [..., in]   weight [out, in]   bias [out] or undefined
///   returns [..., out]
/// Differentiable in x, weight and bias. Throws ShapeError.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
              FusedActivation activation = FusedActivation::none);

}  // namespace attune
