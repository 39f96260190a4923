#pragma once

#include <cstdint>

#include "attune/tensor/device.h"

namespace attune {

enum class SoftmaxKind { probabilities, logarithms };

/// y = softmax(x) or log(softmax(x)) of each row; y may be x. [rows, columns]
void softmax_forward(Cpu, SoftmaxKind kind, const float* x, float* y, int64_t rows, int64_t columns);
void softmax_forward(Cpu, SoftmaxKind kind, const double* x, double* y, int64_t rows, int64_t columns);

/// dx from the output y; dx may be dy.
void softmax_backward(Cpu, SoftmaxKind kind, const float* y, const float* dy, float* dx, int64_t rows, int64_t columns);
void softmax_backward(Cpu, SoftmaxKind kind, const double* y, const double* dy, double* dx, int64_t rows,
                      int64_t columns);

}  // namespace attune
