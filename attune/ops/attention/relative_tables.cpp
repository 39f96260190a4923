#include "attune/ops/attention/relative_tables.h"

#include "attune/base/fail.h"

namespace attune {
namespace {

void check_table(std::string_view op, const char* name, const Tensor& table, DType dtype, int64_t width) {
  if (!table.defined()) return;
  if (table.dtype() != dtype || table.rank() != 2 || table.size(0) % 2 != 1 || table.size(1) != width)
    fail<ShapeError>("{}: {} is {} {}, needs {} [2 clip + 1, {}]", op, name, name_of(table.dtype()),
                     table.shape().text(), name_of(dtype), width);
}

}  // namespace

void check_relative_tables(std::string_view op, const Tensor& keys, const Tensor& values, DType dtype, int64_t d_k,
                           int64_t d_v) {
  check_table(op, "relative_keys", keys, dtype, d_k);
  check_table(op, "relative_values", values, dtype, d_v);
  if (keys.defined() && values.defined() && keys.size(0) != values.size(0))
    fail<ShapeError>("{}: relative_keys {} and relative_values {} differ in rows", op, keys.shape().text(),
                     values.shape().text());
}

void check_distance_bias(std::string_view op, const Tensor& bias, DType dtype, int64_t heads) {
  if (!bias.defined()) return;
  if (bias.dtype() != dtype || bias.rank() != 2 || bias.size(0) % 2 != 1 || bias.size(1) != heads)
    fail<ShapeError>("{}: distance_bias is {} {}, needs {} [2 reach + 1, {}]", op, name_of(bias.dtype()),
                     bias.shape().text(), name_of(dtype), heads);
}

int64_t relative_clip(const Tensor& keys, const Tensor& values) {
  const Tensor& table = keys.defined() ? keys : values;
  return table.defined() ? table.size(0) / 2 : 0;
}

}  // namespace attune
