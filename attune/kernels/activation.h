#pragma once

#include <cstdint>

#include "attune/kernels/activation_kind.h"
#include "attune/tensor/device.h"
#include "attune/tensor/dtype.h"

namespace attune {

/// y[i] = activation(x[i]); y may be x. Activation::none copies.
void activation_forward(Cpu, Activation kind, const float* x, float* y, int64_t n);
void activation_forward(Cpu, Activation kind, const double* x, double* y, int64_t n);
void activation_forward(Cpu, Activation kind, const bfloat16* x, bfloat16* y, int64_t n);

/// In place on `rows` rows of `columns` numbers that are `width` apart.
inline void activate_rows(Cpu, Activation activation, float* y, int64_t rows, int64_t columns, int64_t width) {
  if (activation == Activation::none) return;
  for (int64_t r = 0; r < rows; ++r) activation_forward(Cpu{}, activation, y + r * width, y + r * width, columns);
}

/// dx[i] = dy[i] * activation'(...); dx may be dy. `saved` is for relu its output or input, whose signs say the same;
/// for the others their input.
void activation_backward(Cpu, Activation kind, const float* saved, const float* dy, float* dx, int64_t n);
void activation_backward(Cpu, Activation kind, const double* saved, const double* dy, double* dx, int64_t n);

}  // namespace attune
