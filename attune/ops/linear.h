#pragma once

#include <span>

#include "attune/kernels/activation_kind.h"
#include "attune/ops/dropout.h"
#include "attune/tensor/tensor.h"

namespace [[gnu::visibility("default")]] attune {

struct LinearOptions {
  Activation activation = Activation::none;
  DropoutMask dropout = {};  // after the activation; behind a ReLU the gradient needs no mask: what is 0 was dropped
  /// The result is bfloat16 where bfloat16_products(): for readers that would round it, or add it to float32.
  bool bf16_output = false;
};

/// dropout(activation(x weight^T + bias)), with bias and activation in the matrix product's epilogue.
///   x [..., in]   weight [out, in]   bias [out] or undefined
///   returns [..., out]
/// Where bfloat16_products() the product takes bfloat16 of a float32 weight, and of x if it is not bfloat16 already.
/// Differentiable in x, weight and bias. Throws ShapeError.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, const LinearOptions& options);
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, Activation activation = Activation::none);

struct LinearParameters {
  Tensor weight;  // [out, in]
  Tensor bias;    // [out], or undefined
};

/// linear(x, weight_i, bias_i) for 1 to 3 of them in one product.
///   x [..., in]   returns [..., sum of out_i], the results side by side
/// Parameters that follow one another in memory (Tensor::rows of one tensor) are read in place, others are copied
/// together first. Differentiable in x and each of the parameters. Throws ShapeError.
Tensor fused_linear(const Tensor& x, std::span<const LinearParameters> parameters);

}  // namespace attune
