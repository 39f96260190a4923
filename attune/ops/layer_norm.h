#pragma once

#include "attune/ops/dropout.h"
#include "attune/tensor/tensor.h"

namespace attune {

struct LayerNormOptions {
  bool unbiased_std = false;
  double epsilon = 1e-5;  // above 0
};

/// Each row of x normalised over its last dimension:
///   gain * (x - mean) / sqrt(var + epsilon) + bias            (Ba et al. 2016), or with `unbiased_std`
///   gain * (x - mean) / (std + epsilon) + bias, std with n-1  (The Annotated Transformer)
///   x [..., d]   gain [d]   bias [d]; returns [..., d]
/// Differentiable in x, gain and bias, also where a row is constant. Throws ShapeError, ConfigError.
Tensor layer_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, const LayerNormOptions& options = {});

/// layer_norm(x + dropout(y)): the end of a post-norm sublayer in one pass.
Tensor residual_dropout_layer_norm(const Tensor& x, const Tensor& y, const DropoutMask& mask, const Tensor& gain,
                                   const Tensor& bias, const LayerNormOptions& options = {});

}  // namespace attune
