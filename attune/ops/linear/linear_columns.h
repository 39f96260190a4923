#pragma once

#include <span>

#include "attune/tensor/tensor.h"

namespace attune {

/// y[r, j] = x[r] weight[columns[r][j]]^T + bias[columns[r][j]], and -inf beyond the columns of row r: some columns of
/// linear(), which may differ from row to row. Adjacent rows with the same span are computed together.
///   x [rows, in]   weight [out, in]   bias [out] or undefined   columns: one list for each row
///   returns [rows, longest list]
/// The weight may be bfloat16 where x is float32. As in linear(), x is then rounded if bfloat16_products(). The result
/// of a row depends only on that row and its columns; in float32 its bits are those of panel_linear(). Not
/// differentiable. Throws ShapeError.
Tensor linear_columns(const Tensor& x, const Tensor& weight, const Tensor& bias,
                      std::span<const std::span<const int32_t>> columns);

}  // namespace attune
