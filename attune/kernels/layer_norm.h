#pragma once

#include "attune/kernels/dropout_mask.h"
#include "attune/kernels/norm_form.h"
#include "attune/tensor/tensor.h"

namespace attune {

/// out = layer_norm(x), or layer_norm(x + dropout(y)) when y is defined. x is float32 or float64, y of its dtype or
/// bfloat16 beside a float32 x, out of the dtype of x or, without y, bfloat16 beside a float32 x.
struct LayerNormForward {
  const Tensor& x;       // [..., columns]
  const Tensor& y;       // likewise, or undefined
  DropoutMask mask;      // of y
  const Tensor& weight;  // [columns]
  const Tensor& bias;    // [columns], or undefined
  LayerNormOptions options;
  const Tensor& sum;         // like x: where x + dropout(y) goes, or undefined
  const Tensor& out;         // like x
  const Tensor& statistics;  // [rows, 3] of each row what backward needs, or undefined
};
void layer_norm_forward(Cpu, const LayerNormForward& arguments);
void layer_norm_forward(Plain, const LayerNormForward& arguments);

/// From what was normalised and its statistics: the gradient dx; dropout(dx) in d_dropped, the gradient of y; and the
/// gradients of weight and bias. dy and d_dropped may be bfloat16 beside a float32 x, one of them at a time.
struct LayerNormBackward {
  const Tensor& normalised;  // the input of the normalisation: x or the sum
  const Tensor& statistics;
  const Tensor& weight;
  const Tensor& dy;
  DropoutMask mask;
  bool centred;  // the mean was taken off: every form but rms
  const Tensor& dx;
  const Tensor& d_dropped;  // or undefined
  const Tensor& d_weight;
  const Tensor& d_bias;  // or undefined
};
void layer_norm_backward(Cpu, const LayerNormBackward& arguments);
void layer_norm_backward(Plain, const LayerNormBackward& arguments);

/// A row of the statistics: its mean (0 in the rms form), the factor of x - mean, and the weight of the part of the
/// gradient that lies along the normalised row.
template <class T>
struct LayerNormStatistics {
  T mean;
  T factor;
  T along;
};

}  // namespace attune
