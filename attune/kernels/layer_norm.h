#pragma once

#include <cstdint>

#include "attune/kernels/dropout_mask.h"
#include "attune/tensor/device.h"
#include "attune/tensor/dtype.h"

namespace [[gnu::visibility("default")]] attune {

/// What a row is divided by, and whether its mean is taken off first.
enum class NormForm { variance, unbiased_std, rms };

struct LayerNormOptions {
  NormForm form = NormForm::variance;
  double epsilon = 1e-5;      // above 0
  bool for_products = false;  // layer_norm alone: the result is bfloat16 where bfloat16_products()
};

/// What backward needs of a row: its mean (0 in the rms form), the factor of x - mean, and the weight of the part of
/// the gradient that lies along the normalised row.
template <class T>
struct LayerNormStatistics {
  T mean;
  T factor;
  T along;
};

/// out = layer_norm(x), or layer_norm(x + dropout(y)) when y is given; then the sum is written to `sum` unless that is
/// null. T is what is computed with, Y the type of y, Out that of the result.
template <class T, class Y = T, class Out = T>
struct LayerNormForward {
  int64_t rows, columns;
  const T* x;
  const Y* y;
  DropoutMask mask;
  const T* gain;
  const T* bias;  // or null
  LayerNormOptions options;
  T* sum;  // may be null only where Out is T
  Out* out;
  LayerNormStatistics<T>* statistics;  // [rows], or null
};

/// From what was normalised: its gradient dx; when d_dropped is given also dropout(dx), the gradient of y; and the
/// gradients of gain and, unless d_bias is null, bias. Dy is the type of dy, Dropped that of d_dropped.
template <class T, class Dy = T, class Dropped = T>
struct LayerNormBackward {
  int64_t rows, columns;
  const T* normalised;  // the input of the normalisation: x or the sum
  const LayerNormStatistics<T>* statistics;
  const T* gain;
  const Dy* dy;
  DropoutMask mask;
  bool centred;  // the mean was taken off: every form but rms
  T* dx;
  Dropped* d_dropped;
  T* d_gain;
  T* d_bias;
};

void layer_norm_forward(Cpu, const LayerNormForward<float>& arguments);
void layer_norm_forward(Cpu, const LayerNormForward<double>& arguments);
void layer_norm_forward(Cpu, const LayerNormForward<float, bfloat16>& arguments);
void layer_norm_forward(Cpu, const LayerNormForward<float, float, bfloat16>& arguments);
void layer_norm_backward(Cpu, const LayerNormBackward<float>& arguments);
void layer_norm_backward(Cpu, const LayerNormBackward<double>& arguments);
void layer_norm_backward(Cpu, const LayerNormBackward<float, bfloat16>& arguments);
void layer_norm_backward(Cpu, const LayerNormBackward<float, float, bfloat16>& arguments);

}  // namespace attune
