#pragma once
// The tables of relative positions: Shaw et al. 2018, equations 3 to 5; Raffel et al. 2020, section 2.1.

#include <string_view>

#include "attune/tensor/tensor.h"

namespace attune {

/// Throws ShapeError, beginning with `op`, unless each defined table is [2 clip + 1, d_k] for the keys and
/// [2 clip + 1, d_v] for the values, with the same clip and of this dtype.
void check_relative_tables(std::string_view op, const Tensor& keys, const Tensor& values, DType dtype, int64_t d_k,
                           int64_t d_v);

/// Throws ShapeError, beginning with `op`, unless the bias is undefined or [2 reach + 1, heads] of this dtype.
void check_distance_bias(std::string_view op, const Tensor& bias, DType dtype, int64_t heads);

/// The clip of the tables: larger distances count as this one. 0 without a table.
int64_t relative_clip(const Tensor& keys, const Tensor& values);

}  // namespace attune
