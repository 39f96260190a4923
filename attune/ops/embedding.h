#pragma once

#include "attune/ops/dropout.h"
#include "attune/ops/linear/panel_weight.h"
#include "attune/tensor/indices.h"
#include "attune/tensor/tensor.h"

namespace [[gnu::visibility("default")]] attune {

/// Row ids[i] of the table, times `scale` (sqrt(d_model) in Vaswani et al. 2017, section 3.4).
///   ids [n]   table [vocabulary, d]   returns [n, d], in float32 where the table is bfloat16
/// Differentiable in a table that is not bfloat16. Throws ShapeError, and DataError for an id outside the vocabulary.
Tensor embedding(const Indices& ids, const Tensor& table, double scale = 1);

/// The same for a table that exists only as panels; records no gradient.
Tensor panel_embedding(const Indices& ids, const PanelWeight& table, double scale = 1);

/// dropout(x + table[rows]): the positional encoding. The table is constant.
///   x [n, d]   table [m, d]   rows [n]   returns [n, d]
/// Differentiable in x. Throws ShapeError, ConfigError, and DataError for a row outside the table.
Tensor add_rows(const Tensor& x, const Tensor& table, const Indices& rows, const DropoutMask& mask = {});

}  // namespace attune
