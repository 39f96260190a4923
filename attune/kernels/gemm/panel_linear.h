#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "attune/kernels/activation_kind.h"
#include "attune/kernels/gemm/column_groups.h"
#include "attune/kernels/gemm/panel_weight.h"
#include "attune/tensor/tensor.h"

namespace attune {

constexpr size_t kMostPanelParts = 3;

/// One weight of a product. Its result is written to columns [column, column + weight->out) of y.
struct PanelPart {
  const Panels* weight;
  Tensor bias;  // [out], or undefined
  Tensor y;     // [..., width]
  int64_t column;
};

/// part.y[r, column + o] = activation(x[r] . w_part[o] + bias[o]). There are at most kMostPanelParts parts, either all
/// of one quantised format or all of float32 and bfloat16.
///   x [..., in] float32, or bfloat16 if all weights are
/// bfloat16 weights are widened to float32, so the bits are those of float32 panels of the same numbers. With x in
/// bfloat16 too, the processor's products of bfloat16 may be used: sums in float32, in an order of their own.
/// With int8 weights each row of x is quantised to 8 bits; with int4 weights each group of 32 numbers of a row is:
/// q = round(x / scale), scale = largest magnitude / 127. The scale is 0 if that magnitude is below 127 times the
/// smallest normal number, and NaN if a number is not finite. Sums of q are exact. They are multiplied by (scale of the
/// weight * scale of x) in float32, for int4 group after group, so the bits are the same on every device.
void panel_linear(Cpu, const Tensor& x, std::span<const PanelPart> parts, Activation activation);
void panel_linear(Plain, const Tensor& x, std::span<const PanelPart> parts, Activation activation);
void panel_linear(Cuda, const Tensor& x, std::span<const PanelPart> parts, Activation activation);

/// y[r, j] = x[r] . w[c] + bias[c] with c = columns[j] of the group of row r, and -inf for j beyond its columns. The
/// bits are those of panel_linear().
///   x [rows, in]   bias [out] or undefined   y [rows, width]; types as in panel_linear()
void panel_linear_columns(Cpu, const Tensor& x, const Panels& weight, const Tensor& bias,
                          std::span<const ColumnGroup> groups, const Tensor& y);
void panel_linear_columns(Plain, const Tensor& x, const Panels& weight, const Tensor& bias,
                          std::span<const ColumnGroup> groups, const Tensor& y);
void panel_linear_columns(Cuda, const Tensor& x, const Panels& weight, const Tensor& bias,
                          std::span<const ColumnGroup> groups, const Tensor& y);

}  // namespace attune
