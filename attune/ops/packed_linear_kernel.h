#pragma once

#include <cstdint>
#include <span>

#include "attune/ops/matmul_kernel.h"
#include "attune/ops/packed_weight_kernel.h"
#include "attune/tensor/device.h"

namespace attune {

struct PackedPart {
  Panels weight;
  const float* bias;  // or null
  int64_t column;     // of y, where its outputs begin
};

/// y[r, part.column + o] = activation(x[r] . w_part[o] + bias[o]); the parts are of one format.
struct PackedProduct {
  const float* x;  // [rows, in]
  int64_t rows, in;
  std::span<const PackedPart> parts;
  float* y;  // [rows, width]
  int64_t width;
  FusedActivation activation;
};
void packed_linear(Cpu, const PackedProduct& product);

/// y[r, j] = x[r] . w[columns[j]] + bias[columns[j]], to the bit as packed_linear() has it.
struct PackedColumns {
  const float* x;  // [rows, in]
  int64_t rows, in;
  Panels weight;
  const float* bias;  // or null
  std::span<const int32_t> columns;
  float* y;  // rows `width` apart
  int64_t width;
};
void packed_linear_columns(Cpu, const PackedColumns& product);

}  // namespace attune
