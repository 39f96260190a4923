#pragma once

#include <string_view>

#include "attune/ops/linear/linear.h"
#include "attune/tensor/tensor.h"

namespace attune {

/// Throws ShapeError, naming the operation, where `weight` is bfloat16 and needs a gradient: only models for inference
/// have such weights.
void check_weight_gradient(std::string_view op, const Tensor& weight);

/// Throw ShapeError unless linear() takes these: x [..., in], weight [out, in], bias [out] or undefined.
void check_linear(const Tensor& x, const Tensor& weight, const Tensor& bias);
void check_linear(const Tensor& x, const LinearParameters& parameters);

}  // namespace attune
