#pragma once

#include <cstdint>

#include "attune/ops/activation.h"
#include "attune/ops/matmul_kernel.h"
#include "attune/tensor/device.h"
#include "attune/tensor/dtype.h"

namespace attune {

/// What a product's epilogue does, as an operation of its own; relu stands for none as well.
inline ActivationKind kind_of(FusedActivation activation) {
  switch (activation) {
    case FusedActivation::gelu:
      return ActivationKind::gelu;
    case FusedActivation::gelu_tanh:
      return ActivationKind::gelu_tanh;
    case FusedActivation::silu:
      return ActivationKind::silu;
    case FusedActivation::tanh:
      return ActivationKind::tanh;
    case FusedActivation::none:
    case FusedActivation::relu:
      break;
  }
  return ActivationKind::relu;
}

/// y[i] = activation(x[i]); y may be x.
void activation_forward(Cpu, ActivationKind kind, const float* x, float* y, int64_t n);
void activation_forward(Cpu, ActivationKind kind, const double* x, double* y, int64_t n);
void activation_forward(Cpu, ActivationKind kind, const bfloat16* x, bfloat16* y, int64_t n);

/// In place on `rows` rows of `columns` numbers that are `width` apart.
inline void activate_rows(Cpu, FusedActivation activation, float* y, int64_t rows, int64_t columns, int64_t width) {
  if (activation == FusedActivation::none) return;
  for (int64_t r = 0; r < rows; ++r)
    activation_forward(Cpu{}, kind_of(activation), y + r * width, y + r * width, columns);
}

/// dx[i] = dy[i] * activation'(...); dx may be dy. `saved` is for relu its output or input, whose signs say the same;
/// for the others their input.
void activation_backward(Cpu, ActivationKind kind, const float* saved, const float* dy, float* dx, int64_t n);
void activation_backward(Cpu, ActivationKind kind, const double* saved, const double* dy, double* dx, int64_t n);

}  // namespace attune
