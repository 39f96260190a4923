#pragma once
// Conversions of numbers in the memory of the CPU, for kernels that convert what they read.

#include <cstdint>

#include "attune/tensor/dtype.h"

namespace attune::cpu {

/// y[i] = x[i], rounded to the nearest, for n numbers.
void to_bfloat16(const float* x, bfloat16* y, int64_t n);
/// y[i] = x[i] for n numbers.
void widen(const bfloat16* x, float* y, int64_t n);

}  // namespace attune::cpu
