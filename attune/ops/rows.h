#pragma once
// Tensors seen as rows: the last dimension counts the columns, all others the rows.

#include <string_view>

#include "attune/tensor/tensor.h"

namespace attune {

struct Rows {
  int64_t rows = 0;
  int64_t columns = 0;
};

/// Throws ShapeError for an undefined tensor or one without dimensions.
Rows rows_of(std::string_view op, const Tensor& x);

/// Throws ShapeError, naming both shapes and dtypes, unless `other` has the shape and dtype of `x`.
void check_like(std::string_view op, const Tensor& x, std::string_view other_name, const Tensor& other);

/// Throws ShapeError unless `y`, which is added to x, has its shape, and its dtype or bfloat16 where x is float32.
void check_addend(std::string_view op, const Tensor& x, const Tensor& y);

/// Throws ShapeError unless `v` has one element for each column of `x` and the same dtype.
void check_column_vector(std::string_view op, const Tensor& x, std::string_view name, const Tensor& v);

}  // namespace attune
