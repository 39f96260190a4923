#pragma once

#include "attune/kernels/norm_form.h"
#include "attune/ops/dropout.h"
#include "attune/tensor/tensor.h"

namespace [[gnu::visibility("default")]] attune {

/// Normalises each row of x over the last dimension:
///   variance       weight * (x - mean) / sqrt(var + epsilon) + bias            (Ba et al. 2016, equation 4)
///   unbiased_std   weight * (x - mean) / (std + epsilon) + bias, std with n-1  (The Annotated Transformer)
///   rms            weight * x / sqrt(mean(x^2) + epsilon)                      (Zhang & Sennrich 2019, equation 4)
///   x [..., d]   weight [d]   bias [d], or undefined for none; undefined with rms   returns [..., d]
/// Differentiable in x, weight and bias, also where a row is constant. Throws ShapeError, ConfigError.
Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, const LayerNormOptions& options = {});

/// layer_norm(x + dropout(y)) in one pass: the end of a post-norm sublayer. If x is float32, y may be bfloat16.
Tensor residual_dropout_layer_norm(const Tensor& x, const Tensor& y, const DropoutMask& mask, const Tensor& weight,
                                   const Tensor& bias, const LayerNormOptions& options = {});

}  // namespace attune
