#pragma once

#include <cstdint>

#include "attune/kernels/activation_kind.h"
#include "attune/tensor/device.h"
#include "attune/tensor/dtype.h"

namespace attune {

/// On its way back into a product the gradient of its result, scale * dy, goes through the slope of the activation, and
/// is summed up for the bias, in one pass. T is what sums are formed in.
template <class T, class Dy, class Dz>
struct LinearGradient {
  int64_t rows, columns;
  const Dy* dy;
  const Dz* saved;  // as activation_backward() has it; null where the activation is none
  Activation activation;
  double scale;  // of dropout behind a ReLU, whose result says what was dropped; else 1
  Dz* dz;        // may be dy; null: not wanted
  T* d_bias;     // [columns], or null
};

void linear_gradient(Cpu, const LinearGradient<float, float, float>& arguments);
void linear_gradient(Cpu, const LinearGradient<double, double, double>& arguments);
void linear_gradient(Cpu, const LinearGradient<float, float, bfloat16>& arguments);
void linear_gradient(Cpu, const LinearGradient<float, bfloat16, bfloat16>& arguments);

}  // namespace attune
