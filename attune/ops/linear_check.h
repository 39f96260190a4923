#pragma once

#include "attune/ops/linear.h"
#include "attune/tensor/tensor.h"

namespace attune {

/// Throw ShapeError unless linear() takes these: x [..., in], weight [out, in], bias [out] or undefined.
void check_linear(const Tensor& x, const Tensor& weight, const Tensor& bias);
void check_linear(const Tensor& x, const LinearParameters& parameters);

}  // namespace attune
