#pragma once

#include "attune/tensor/tensor.h"

namespace attune {

/// Throws ShapeError unless linear() takes these: x [..., in], weight [out, in], bias [out] or undefined.
void check_linear(const Tensor& x, const Tensor& weight, const Tensor& bias);

}  // namespace attune
