#pragma once
// Activations of numbers in the memory of the CPU, for kernels that form them piece by piece.

#include <cstdint>

#include "attune/kernels/activation_kind.h"
#include "attune/tensor/dtype.h"

namespace attune::cpu {

/// y[i] = activation(x[i]) for n numbers; y may be x.
void activate(Activation activation, const float* x, float* y, int64_t n);
void activate(Activation activation, const double* x, double* y, int64_t n);
void activate(Activation activation, const bfloat16* x, bfloat16* y, int64_t n);

/// In place on `rows` rows of `columns` numbers that are `width` apart.
inline void activate_rows(Activation activation, float* y, int64_t rows, int64_t columns, int64_t width) {
  if (activation == Activation::none) return;
  for (int64_t r = 0; r < rows; ++r) activate(activation, y + r * width, y + r * width, columns);
}

}  // namespace attune::cpu
