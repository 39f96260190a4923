#pragma once

#include <span>

#include "attune/kernels/activation_kind.h"
#include "attune/ops/linear/panel_weight.h"
#include "attune/tensor/tensor.h"

namespace attune {

/// activation(x W^T + bias) for inference; records no gradient.
///   x [..., in] float32, or bfloat16 with bfloat16 weights   bias [out] float32 or undefined
///   returns [..., out] float32
/// The result of a row depends only on that row, bit for bit, on every processor, for any number of rows and threads.
/// bfloat16 weights are widened to float32, which is exact. With int8 weights each row of x is quantised to 8 bits
/// (symmetrically, by its largest number); with int4 weights each group of 32 numbers of a row is. Throws ShapeError.
Tensor panel_linear(const Tensor& x, const PanelWeight& weight, const Tensor& bias,
                    Activation activation = Activation::none);

/// Whether products with a and b read x in the same form, so that they can be one product: both have the same format,
/// or neither is quantised.
bool read_one_input(const PanelWeight& a, const PanelWeight& b);

struct PanelParameters {
  const PanelWeight* weight = nullptr;
  Tensor bias;  // [out], or undefined
};

/// panel_linear(x, weight_i, bias_i), in one pass over x, for weights that read_one_input().
///   returns [..., sum of out_i], the results side by side
Tensor fused_panel_linear(const Tensor& x, std::span<const PanelParameters> parameters);

/// The same, but writes each result to its own tensor products[i].
void panel_linear_each(const Tensor& x, std::span<const PanelParameters> parameters, std::span<Tensor> products);

/// panel_linear() of each segment of rows with parameters of its own: rows offsets[i] to offsets[i + 1] - 1 of x times
/// those of parameters[i]. Parameters of empty segments are not read, but for the width of the first.
///   x [rows, in]   every weight [out, in]   returns [rows, out]
Tensor segment_panel_linear(const Tensor& x, std::span<const int64_t> offsets,
                            std::span<const PanelParameters> parameters);

/// Only the columns columns[r] of row r, with the same bits, and -inf after them; see linear_columns().
///   x [rows, in]   returns [rows, longest list]
Tensor panel_linear_columns(const Tensor& x, const PanelWeight& weight, const Tensor& bias,
                            std::span<const std::span<const int32_t>> columns);

}  // namespace attune
