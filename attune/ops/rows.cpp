#include "attune/ops/rows.h"

#include <span>
#include <vector>

#include "attune/base/fail.h"

namespace attune {

Rows rows_of(std::string_view op, const Tensor& x) {
  if (!x.defined()) fail<ShapeError>("{}: the input is undefined", op);
  if (x.rank() < 1) fail<ShapeError>("{}: needs at least one dimension, found shape {}", op, x.shape().text());
  return as_rows(x);
}

void check_rows(std::string_view op, const Tensor& x) {
  rows_of(op, x);
  if (!is_floating(x.dtype())) refuse_dtype(op, x.dtype());
}

Shape shape_with_columns(const Tensor& x, int64_t columns) {
  std::vector<int64_t> sizes(x.shape().begin(), x.shape().end());
  sizes.back() = columns;
  return Shape{std::span<const int64_t>(sizes)};
}

void check_device(std::string_view op, const Tensor& x, std::initializer_list<Tensor> others) {
  for (const Tensor& other : others)
    if (other.defined() && other.device() != x.device())
      fail<ShapeError>("{}: the input is on {} but another tensor on {}", op, x.device().text(), other.device().text());
}

void check_like(std::string_view op, const Tensor& x, std::string_view other_name, const Tensor& other) {
  if (!other.defined()) fail<ShapeError>("{}: {} is undefined", op, other_name);
  if (x.shape() != other.shape() || x.dtype() != other.dtype())
    fail<ShapeError>("{}: input is {} {} but {} is {} {}", op, name_of(x.dtype()), x.shape().text(), other_name,
                     name_of(other.dtype()), other.shape().text());
  check_device(op, x, {other});
}

void check_addend(std::string_view op, const Tensor& x, const Tensor& y) {
  if (y.defined() && y.dtype() == DType::bf16 && x.dtype() == DType::f32 && x.shape() == y.shape())
    return check_device(op, x, {y});
  check_like(op, x, "the sublayer's output", y);
}

void check_column_vector(std::string_view op, const Tensor& x, std::string_view name, const Tensor& v) {
  if (!v.defined()) fail<ShapeError>("{}: {} is undefined", op, name);
  if (v.rank() != 1 || v.size(0) != x.size(-1) || v.dtype() != x.dtype())
    fail<ShapeError>("{}: input is {} {} with {} columns but {} is {} {}", op, name_of(x.dtype()), x.shape().text(),
                     x.size(-1), name, name_of(v.dtype()), v.shape().text());
  check_device(op, x, {v});
}

}  // namespace attune
