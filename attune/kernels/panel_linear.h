#pragma once

#include <cstdint>
#include <span>

#include "attune/kernels/matmul.h"
#include "attune/kernels/panel_weight.h"
#include "attune/tensor/device.h"

namespace attune {

struct PackedPart {
  Panels weight;
  const float* bias;  // or null
  float* y;           // of the first row
  int64_t width;      // from a row of y to the next
};

/// part.y[r, o] = activation(x[r] . w_part[o] + bias[o]); the parts are of one format.
struct PackedProduct {
  const float* x;  // [rows, in]
  int64_t rows, in;
  std::span<const PackedPart> parts;
  Activation activation;
};
void panel_linear(Cpu, const PackedProduct& product);

/// y[r, j] = x[r] . w[columns[j]] + bias[columns[j]], to the bit as panel_linear() has it.
struct PanelColumns {
  const float* x;  // [rows, in]
  int64_t rows, in;
  Panels weight;
  const float* bias;  // or null
  std::span<const int32_t> columns;
  float* y;  // rows `width` apart
  int64_t width;
};
void panel_linear_columns(Cpu, const PanelColumns& product);

/// Some rows by some panels of a product, on one thread and without the activation.
struct PanelBlock {
  int64_t rows;
  Panels weight;      // beginning with the first panel
  const float* bias;  // of the first output, or null
  int64_t outputs;    // at most those of `weight`
  float* y;           // of the first row and output
  int64_t width;
};
/// Rows of x are `x_width` apart. `onto`: the sums are added to what y has.
void float_block(const float* x, int64_t x_width, const PanelBlock& block, bool onto = false);

/// Rows in 8 bits, q = round(x / scale), each of them, or each 32 numbers for int4, by its largest number.
struct QuantisedRows {
  uint8_t* numbers;  // [rows, stride]: for int8 weights q + 128, for int4 q
  float* scales;     // [rows, scales_of_row]
  int32_t* offsets;  // int4: [rows, scales_of_row], -8 times the sum of the numbers
  int64_t stride;    // a multiple of 64; numbers behind the row are 0
  int64_t scales_of_row;
};
void quantise_rows(WeightFormat format, const float* x, int64_t rows, int64_t in, const QuantisedRows& to);
void integer_block(const QuantisedRows& x, const PanelBlock& block);

}  // namespace attune
