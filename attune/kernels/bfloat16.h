#pragma once

#include <cstdint>

#include "attune/tensor/device.h"
#include "attune/tensor/dtype.h"

namespace attune {

/// y[i] = x[i], rounded to the nearest.
void to_bfloat16(Cpu, const float* x, bfloat16* y, int64_t n);
/// y[i] = x[i].
void widen(Cpu, const bfloat16* x, float* y, int64_t n);

}  // namespace attune
