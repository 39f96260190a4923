#include "attune/ops/linear/linear_columns.h"

#include <vector>

#include "attune/base/fail.h"
#include "attune/kernels/gemm/linear_columns.h"
#include "attune/ops/linear/column_groups.h"
#include "attune/ops/linear/precision.h"
#include "attune/ops/rows.h"
#include "attune/tensor/dispatch.h"

namespace attune {
namespace {

using Columns = std::span<const std::span<const int32_t>>;

void check(const Tensor& x, const Tensor& weight, const Tensor& bias, Columns columns) {
  const bool narrow = x.dtype() == DType::f32 && weight.dtype() == DType::bf16;
  if (x.rank() != 2 || weight.rank() != 2 || x.size(1) != weight.size(1) || (x.dtype() != weight.dtype() && !narrow))
    fail<ShapeError>("linear_columns: x {} {} does not fit weight {} {}", name_of(x.dtype()), x.shape().text(),
                     name_of(weight.dtype()), weight.shape().text());
  if (bias.defined() && (bias.shape() != Shape({weight.size(0)}) || bias.dtype() != x.dtype()))
    fail<ShapeError>("linear_columns: bias {} for weight {}", bias.shape().text(), weight.shape().text());
  if (static_cast<int64_t>(columns.size()) != x.size(0))
    fail<ShapeError>("linear_columns: {} lists of columns for x {}", columns.size(), x.shape().text());
  if (!is_floating(x.dtype())) refuse_dtype("linear_columns", x.dtype());
  check_device("linear_columns", x, {weight, bias});
}

void check(const ColumnGroup& group, const Tensor& weight) {
  for (const int32_t column : group.columns)
    if (column < 0 || column >= weight.size(0))
      fail<ShapeError>("linear_columns: column {} of weight {}", column, weight.shape().text());
}

}  // namespace

Tensor linear_columns(const Tensor& x, const Tensor& weight, const Tensor& bias, Columns columns) {
  check(x, weight, bias, columns);
  const std::vector<ColumnGroup> groups = group_columns(columns);
  for (const ColumnGroup& group : groups) check(group, weight);
  const Tensor y = Tensor::empty({x.size(0), longest_list(groups)}, {x.dtype(), x.device()});
  const bool rounds = weight.dtype() == DType::bf16 && bfloat16_products();
  const Tensor read = rounds ? to_float32(to_bfloat16(x)) : x;
  dispatch(x.device(), [&](auto device) { linear_columns(device, read, weight, bias, groups, y); });
  return y;
}

}  // namespace attune
