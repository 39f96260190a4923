#pragma once
// Tensors seen as rows: the last dimension counts the columns, all others the rows.

#include <initializer_list>
#include <string_view>

#include "attune/kernels/rows.h"
#include "attune/tensor/tensor.h"

namespace attune {

/// Throws ShapeError for an undefined tensor or one without dimensions.
Rows rows_of(std::string_view op, const Tensor& x);

/// Throws ShapeError for an undefined tensor, one without dimensions, or one that is neither float32 nor float64.
void check_rows(std::string_view op, const Tensor& x);

/// The shape of x with `columns` in place of its last size.
Shape shape_with_columns(const Tensor& x, int64_t columns);

/// Throws ShapeError, naming both devices, unless every defined tensor of `others` is on the device of x.
void check_device(std::string_view op, const Tensor& x, std::initializer_list<Tensor> others);

/// Throws ShapeError, naming both shapes and dtypes, unless `other` has the shape and dtype of `x`.
void check_like(std::string_view op, const Tensor& x, std::string_view other_name, const Tensor& other);

/// For y that is added to x. Throws ShapeError unless y has x's shape, and x's dtype or bfloat16 if x is float32.
void check_addend(std::string_view op, const Tensor& x, const Tensor& y);

/// Throws ShapeError unless `v` has one element for each column of `x` and the same dtype.
void check_column_vector(std::string_view op, const Tensor& x, std::string_view name, const Tensor& v);

}  // namespace attune
