#pragma once
// Products of some rows with some panels, on one thread: what products are made of.

#include <cstdint>

#include "attune/kernels/cpu/gemm/panel_data.h"

namespace attune::cpu {

/// Some rows by some panels of a product, without the activation.
struct PanelBlock {
  int64_t rows;
  PanelData weight;   // beginning with the first panel
  const float* bias;  // of the first output, or null
  int64_t outputs;    // at most those of `weight`
  float* y;           // of the first row and output
  int64_t width;      // from a row of y to the next
};

/// The first factor of a product: input k of row r stands at numbers[r * row + k * input]. One of both steps is 1.
struct FloatRows {
  const float* numbers;
  int64_t row, input = 1;
};
/// With weights in float32 or bfloat16; the latter take x row by row. `onto`: the sums are added to what y has.
void float_block(const FloatRows& x, const PanelBlock& block, bool onto = false);

/// Rows in 8 bits, q = round(x / scale). Each row, or for int4 each group of 32 numbers, has a scale by its largest
/// number.
struct QuantisedRows {
  uint8_t* numbers;  // [rows, stride]: for int8 weights q + 128, for int4 q
  float* scales;     // [rows, scales_of_row]
  int32_t* offsets;  // int4: [rows, scales_of_row], -8 times the sum of the numbers
  int64_t stride;    // a multiple of 64; numbers behind the row are 0
  int64_t scales_of_row;
};
void quantise_rows(WeightFormat format, const float* x, int64_t rows, int64_t in, const QuantisedRows& to);
void integer_block(const QuantisedRows& x, const PanelBlock& block);

}  // namespace attune::cpu
