#include "attune/ops/embedding.h"

#include <algorithm>

#include "attune/autograd/graph.h"
#include "attune/base/fail.h"
#include "attune/base/profile.h"
#include "attune/kernels/embedding.h"
#include "attune/kernels/scale.h"
#include "attune/ops/rows.h"
#include "attune/tensor/dispatch.h"

namespace attune {
namespace {

void check_table(std::string_view op, const Tensor& table) {
  if (!table.defined() || table.rank() != 2)
    fail<ShapeError>("{}: the table needs two dimensions, found {}", op,
                     table.defined() ? table.shape().text() : "none");
}

// Returns the index of the first value outside [0, bound), or -1.
int64_t first_outside(const Indices& ids, int64_t bound) {
  const auto values = ids.values();
  const auto found = std::find_if(values.begin(), values.end(), [&](int32_t id) { return id < 0 || id >= bound; });
  return found == values.end() ? -1 : found - values.begin();
}

void check_vocabulary(const Indices& ids, int64_t vocabulary) {
  if (const int64_t i = first_outside(ids, vocabulary); i >= 0)
    fail<DataError>("token id {} at position {} is outside the vocabulary of {}", ids[i], i, vocabulary);
}

}  // namespace

Tensor embedding(const Indices& ids, const Tensor& table, double scale) {
  const ProfileScope scope("embedding");
  check_table("embedding", table);
  check_vocabulary(ids, table.size(0));
  const bool bf16 = table.dtype() == DType::bf16;
  Tensor y = Tensor::empty({ids.size(), table.size(1)}, {bf16 ? DType::f32 : table.dtype(), table.device()});
  dispatch(table.device(), [&](auto device) { embedding_forward(device, ids.on(device), table, scale, y); });
  if (bf16) return y;
  record("embedding", {table}, y, [ids, shape = table.shape(), scale](const Tensor& dy) {
    Tensor d_table = Tensor::empty(shape, {dy.dtype(), dy.device()});
    dispatch(dy.device(), [&](auto device) { embedding_backward(device, ids, dy, scale, d_table); });
    return Gradients{d_table};
  });
  return y;
}

Tensor panel_embedding(const Indices& ids, const PanelWeight& table, double factor) {
  const ProfileScope scope("embedding");
  check_vocabulary(ids, table.out());
  Tensor y = table.rows(ids);
  dispatch(y.device(), [&](auto device) { scale(device, y, factor); });
  return y;
}

Tensor add_rows(const Tensor& x, const Tensor& table, const Indices& rows, const DropoutMask& mask) {
  const ProfileScope scope("add_rows");
  check_table("add_rows", table);
  check_dropout("add_rows", mask);
  if (!x.defined() || x.rank() != 2 || x.size(1) != table.size(1) || x.dtype() != table.dtype())
    fail<ShapeError>("add_rows: input {} {} does not fit the table {} {}", name_of(x.dtype()), x.shape().text(),
                     name_of(table.dtype()), table.shape().text());
  check_device("add_rows", x, {table});
  if (rows.size() != x.size(0))
    fail<ShapeError>("add_rows: input {} has {} rows but {} rows are named", x.shape().text(), x.size(0), rows.size());
  if (const int64_t i = first_outside(rows, table.size(0)); i >= 0)
    fail<DataError>("add_rows: row {} at position {} is outside the table of {}", rows[i], i, table.size(0));
  Tensor y = Tensor::empty_like(x);
  dispatch(x.device(), [&](auto device) {
    const Tensor named = rows.on(device);
    add_rows(device, {.x = x, .table = table, .rows = named, .mask = mask, .y = y});
  });
  record("add_rows", {x}, y, [mask](const Tensor& dy) { return Gradients{dropout(dy, mask)}; });
  return y;
}

}  // namespace attune
