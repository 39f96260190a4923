#pragma once

#include <cstdint>

#include "attune/kernels/activation_kind.h"
#include "attune/tensor/device.h"
#include "attune/tensor/dtype.h"

namespace attune {

/// y [rows, d] = activation(gate) * up, for x [rows, 2 d] = (gate, up).
void gated_activation_forward(Cpu, Activation activation, const float* x, float* y, int64_t rows, int64_t d);
void gated_activation_forward(Cpu, Activation activation, const double* x, double* y, int64_t rows, int64_t d);

/// dx [rows, 2 d] = (dy * up * activation'(gate), dy * activation(gate)).
void gated_activation_backward(Cpu, Activation activation, const float* x, const float* dy, float* dx, int64_t rows,
                               int64_t d);
void gated_activation_backward(Cpu, Activation activation, const double* x, const double* dy, double* dx, int64_t rows,
                               int64_t d);
void gated_activation_forward(Cpu, Activation activation, const bfloat16* x, bfloat16* y, int64_t rows, int64_t d);
void gated_activation_backward(Cpu, Activation activation, const bfloat16* x, const bfloat16* dy, bfloat16* dx,
                               int64_t rows, int64_t d);

}  // namespace attune
