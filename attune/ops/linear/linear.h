#pragma once

#include <memory>
#include <span>

#include "attune/kernels/activation_kind.h"
#include "attune/ops/dropout.h"
#include "attune/tensor/tensor.h"

namespace [[gnu::visibility("default")]] attune {

class PanelWeight;  // attune/ops/linear/panel_weight.h

struct LinearOptions {
  Activation activation = Activation::none;
  DropoutMask dropout = {};  // after the activation; the gradient of a ReLU needs no mask: it is 0 where the result is
  /// If the product takes bfloat16, the result is bfloat16 too: for readers that round it, or that add it to float32.
  bool bf16_output = false;
};

/// dropout(activation(x weight^T + bias)), with bias and activation in the matrix product's epilogue.
///   x [..., in]   weight [out, in]   bias [out] or undefined
///   returns [..., out]
/// The product takes bfloat16 if bfloat16_products() or if x is bfloat16: a float32 x and a float32 weight are rounded
/// for it. Else a bfloat16 weight is widened for the product. Differentiable in x, weight and bias. Throws ShapeError,
/// also for a bfloat16 weight that needs a gradient: only models for inference have such weights.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, const LinearOptions& options);
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, Activation activation = Activation::none);

struct LinearParameters {
  Tensor weight;  // [out, in]
  Tensor bias;    // [out], or undefined
  /// In place of `weight`: a matrix without a gradient in quantised panels. The forward and the backward pass each
  /// widen it, multiply, and free the widened matrix: bit for bit the product with PanelWeight::to_matrix(), at the
  /// memory of the panels. Source: Dettmers et al. 2023, "QLoRA", section 3, with the formats of PanelWeight.
  std::shared_ptr<const PanelWeight> quantised = {};
};

/// linear(), with the weight in either place.
Tensor linear(const Tensor& x, const LinearParameters& parameters, const LinearOptions& options);

/// The matrix for a product with inputs of type `products`: widened where it is quantised, or bfloat16 and the product
/// float32; else the weight. For products in bfloat16 it may be float32, which the caller has to round.
Tensor weight_of(const LinearParameters& parameters, DType products);

/// linear(x, weight_i, bias_i) for 1 to 3 pairs of weight and bias, in one product.
///   x [..., in]   returns [..., sum of out_i], the results side by side; bf16_output: see LinearOptions
/// Parameters that are adjacent in memory (Tensor::rows of one tensor) are read in place where they have the type of
/// the product, else converted together; others are first copied into one tensor. Differentiable in x and in each
/// parameter. Throws as linear() does.
Tensor fused_linear(const Tensor& x, std::span<const LinearParameters> parameters, bool bf16_output = false);

}  // namespace attune
