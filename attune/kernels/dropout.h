#pragma once

#include <cstdint>

#include "attune/kernels/dropout_mask.h"
#include "attune/tensor/device.h"
#include "attune/tensor/dtype.h"

namespace attune {

/// out = dropout(y), or x + dropout(y) when x is given; all [rows, columns]. An inactive mask keeps everything.
void dropout_rows(Cpu, const float* x, const float* y, float* out, int64_t rows, int64_t columns,
                  const DropoutMask& mask);
void dropout_rows(Cpu, const float* x, const bfloat16* y, float* out, int64_t rows, int64_t columns,
                  const DropoutMask& mask);
/// out = dropout(y).
void dropout_rows(Cpu, const float* y, bfloat16* out, int64_t rows, int64_t columns, const DropoutMask& mask);
void dropout_rows(Cpu, const bfloat16* y, bfloat16* out, int64_t rows, int64_t columns, const DropoutMask& mask);
void dropout_rows(Cpu, const double* x, const double* y, double* out, int64_t rows, int64_t columns,
                  const DropoutMask& mask);

}  // namespace attune
