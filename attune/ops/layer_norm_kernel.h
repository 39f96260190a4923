#pragma once

#include <cstdint>

#include "attune/ops/dropout.h"
#include "attune/ops/layer_norm.h"
#include "attune/tensor/device.h"

namespace attune {

/// What backward needs of a row: its mean (0 in the rms form), the factor of x - mean, and the weight of the part of
/// the gradient that lies along the normalised row.
template <class T>
struct LayerNormStatistics {
  T mean;
  T factor;
  T along;
};

/// out = layer_norm(x), or layer_norm(x + dropout(y)) when y is given; then the sum is written to `sum` unless that is
/// null.
template <class T>
struct LayerNormForward {
  int64_t rows, columns;
  const T* x;
  const T* y;
  DropoutMask mask;
  const T* gain;
  const T* bias;  // or null
  LayerNormOptions options;
  T* sum;
  T* out;
  LayerNormStatistics<T>* statistics;  // [rows], or null
};

/// From what was normalised: its gradient dx; when d_dropped is given also dropout(dx), the gradient of y; and the
/// gradients of gain and, unless d_bias is null, bias.
template <class T>
struct LayerNormBackward {
  int64_t rows, columns;
  const T* normalised;  // the input of the normalisation: x or the sum
  const LayerNormStatistics<T>* statistics;
  const T* gain;
  const T* dy;
  DropoutMask mask;
  bool centred;  // the mean was taken off: every form but rms
  T* dx;
  T* d_dropped;
  T* d_gain;
  T* d_bias;
};

void layer_norm_forward(Cpu, const LayerNormForward<float>& arguments);
void layer_norm_forward(Cpu, const LayerNormForward<double>& arguments);
void layer_norm_backward(Cpu, const LayerNormBackward<float>& arguments);
void layer_norm_backward(Cpu, const LayerNormBackward<double>& arguments);

}  // namespace attune
