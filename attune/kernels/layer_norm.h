#pragma once

#include "attune/kernels/dropout_mask.h"
#include "attune/kernels/norm_form.h"
#include "attune/tensor/tensor.h"

namespace attune {

/// out = layer_norm(x), or layer_norm(x + dropout(y)) when y is defined. x is float32 or float64. y has the dtype of x,
/// or is bfloat16 if x is float32. out has the dtype of x; without y it may be bfloat16 if x is float32.
struct LayerNormForward {
  const Tensor& x;       // [..., columns]
  const Tensor& y;       // [..., columns], or undefined
  DropoutMask mask;      // of the dropout on y
  const Tensor& weight;  // [columns]
  const Tensor& bias;    // [columns], or undefined
  LayerNormOptions options;
  const Tensor& sum;         // receives x + dropout(y), like x; or undefined
  const Tensor& out;         // shaped like x
  const Tensor& statistics;  // [rows, 3]: receives LayerNormStatistics of each row for backward; or undefined
};
void layer_norm_forward(Cpu, const LayerNormForward& arguments);
void layer_norm_forward(Plain, const LayerNormForward& arguments);
void layer_norm_forward(Cuda, const LayerNormForward& arguments);

/// Writes the gradients of x (dx), of y (d_dropped = dropout(dx)), of weight and of bias, from the normalised input and
/// its statistics. If x is float32, one of dy and d_dropped may be bfloat16.
struct LayerNormBackward {
  const Tensor& normalised;  // the input of the normalisation: x, or x + dropout(y)
  const Tensor& statistics;
  const Tensor& weight;
  const Tensor& dy;
  DropoutMask mask;
  bool centred;  // the mean was subtracted: every form but rms
  const Tensor& dx;
  const Tensor& d_dropped;  // or undefined
  const Tensor& d_weight;
  const Tensor& d_bias;  // or undefined
};
void layer_norm_backward(Cpu, const LayerNormBackward& arguments);
void layer_norm_backward(Plain, const LayerNormBackward& arguments);
void layer_norm_backward(Cuda, const LayerNormBackward& arguments);

/// One row of the statistics: the mean (0 in the rms form), the factor of x - mean, and the coefficient of the part of
/// the gradient that is parallel to the normalised row.
template <class T>
struct LayerNormStatistics {
  T mean;
  T factor;
  T along;
};

}  // namespace attune
