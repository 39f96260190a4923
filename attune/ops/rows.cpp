#include "attune/ops/rows.h"

#include "attune/base/fail.h"

namespace attune {

Rows rows_of(std::string_view op, const Tensor& x) {
  if (!x.defined()) fail<ShapeError>("{}: the input is undefined", op);
  if (x.rank() < 1) fail<ShapeError>("{}: needs at least one dimension, found shape {}", op, x.shape().text());
  Rows result{.rows = 1, .columns = x.size(-1)};
  for (int dim = 0; dim + 1 < x.rank(); ++dim) result.rows *= x.size(dim);
  return result;
}

void check_like(std::string_view op, const Tensor& x, std::string_view other_name, const Tensor& other) {
  if (!other.defined()) fail<ShapeError>("{}: {} is undefined", op, other_name);
  if (x.shape() != other.shape() || x.dtype() != other.dtype())
    fail<ShapeError>("{}: input is {} {} but {} is {} {}", op, name_of(x.dtype()), x.shape().text(), other_name,
                     name_of(other.dtype()), other.shape().text());
}

void check_addend(std::string_view op, const Tensor& x, const Tensor& y) {
  if (y.defined() && y.dtype() == DType::bf16 && x.dtype() == DType::f32 && x.shape() == y.shape()) return;
  check_like(op, x, "the sublayer's output", y);
}

void check_column_vector(std::string_view op, const Tensor& x, std::string_view name, const Tensor& v) {
  if (!v.defined()) fail<ShapeError>("{}: {} is undefined", op, name);
  if (v.rank() != 1 || v.size(0) != x.size(-1) || v.dtype() != x.dtype())
    fail<ShapeError>("{}: input is {} {} with {} columns but {} is {} {}", op, name_of(x.dtype()), x.shape().text(),
                     x.size(-1), name, name_of(v.dtype()), v.shape().text());
}

}  // namespace attune
