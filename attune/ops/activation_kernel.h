#pragma once

#include <cstdint>

#include "attune/ops/activation.h"
#include "attune/tensor/device.h"
#include "attune/tensor/dtype.h"

namespace attune {

/// y[i] = activation(x[i]); y may be x.
void activation_forward(Cpu, ActivationKind kind, const float* x, float* y, int64_t n);
void activation_forward(Cpu, ActivationKind kind, const double* x, double* y, int64_t n);
void activation_forward(Cpu, ActivationKind kind, const bfloat16* x, bfloat16* y, int64_t n);

/// dx[i] = dy[i] * activation'(...); dx may be dy. `saved` is for relu its output or input, whose signs say the same;
/// for the others their input.
void activation_backward(Cpu, ActivationKind kind, const float* saved, const float* dy, float* dx, int64_t n);
void activation_backward(Cpu, ActivationKind kind, const double* saved, const double* dy, double* dx, int64_t n);

}  // namespace attune
