#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "attune/kernels/activation_kind.h"
#include "attune/kernels/column_groups.h"
#include "attune/kernels/panel_weight.h"
#include "attune/tensor/tensor.h"

namespace attune {

constexpr size_t kMostPanelParts = 3;

/// One weight of a product, and where its result goes: columns [column, column + weight->out) of y.
struct PanelPart {
  const Panels* weight;
  Tensor bias;  // [out], or undefined
  Tensor y;     // [..., width]
  int64_t column;
};

/// part.y[r, column + o] = activation(x[r] . w_part[o] + bias[o]); the parts, at most kMostPanelParts, are of one
/// format.
///   x [..., in] float32
/// With int8 weights each row of x is quantised to 8 bits, with int4 each 32 numbers of one, by the largest magnitude:
/// q = round(x / scale), scale = largest / 127, which is 0 where the largest is below 127 times the smallest normal
/// number, and NaN where a number is not finite. Sums of q are exact; times (weight's scale * x's scale) in float32,
/// for int4 group after group, they give the same bits on every device.
void panel_linear(Cpu, const Tensor& x, std::span<const PanelPart> parts, Activation activation);
void panel_linear(Plain, const Tensor& x, std::span<const PanelPart> parts, Activation activation);

/// y[r, j] = x[r] . w[c] + bias[c], to the bit as panel_linear() has it, with c = columns[j] of the group of row r;
/// -inf beyond its columns.
///   x [rows, in]   bias [out] or undefined   y [rows, width]
void panel_linear_columns(Cpu, const Tensor& x, const Panels& weight, const Tensor& bias,
                          std::span<const ColumnGroup> groups, const Tensor& y);
void panel_linear_columns(Plain, const Tensor& x, const Panels& weight, const Tensor& bias,
                          std::span<const ColumnGroup> groups, const Tensor& y);

}  // namespace attune
