#include "attune/ops/embedding.h"

#include "attune/autograd/graph.h"
#include "attune/base/fail.h"
#include "attune/base/profile.h"
#include "attune/kernels/embedding.h"
#include "attune/ops/rows.h"

namespace attune {
namespace {

void check_table(std::string_view op, const Tensor& table) {
  if (!table.defined() || table.rank() != 2)
    fail<ShapeError>("{}: the table needs two dimensions, found {}", op,
                     table.defined() ? table.shape().text() : "none");
}

void check_ids(std::string_view op, std::string_view name, const Tensor& ids) {
  if (!ids.defined() || ids.rank() != 1 || ids.dtype() != DType::i32)
    fail<ShapeError>("{}: {} need one dimension of int32, found {} {}", op, name,
                     ids.defined() ? name_of(ids.dtype()) : "nothing", ids.shape().text());
}

int64_t first_outside_of(const Tensor& ids, int64_t bound) {
  return dispatch(ids.device(),
                  [&](auto device) { return first_outside(device, ids.data<int32_t>(), ids.numel(), bound); });
}

}  // namespace

Tensor embedding(const Tensor& ids, const Tensor& table, double scale) {
  const ProfileScope scope("embedding");
  check_table("embedding", table);
  check_ids("embedding", "the ids", ids);
  if (const int64_t i = first_outside_of(ids, table.size(0)); i >= 0)
    fail<DataError>("token id {} at position {} is outside the vocabulary of {}", ids.data<int32_t>()[i], i,
                    table.size(0));

  const Shape table_shape = table.shape();
  const int64_t columns = table.size(1);
  Tensor y = Tensor::empty({ids.size(0), columns}, {table.dtype(), table.device()});
  dispatch_floating("embedding", table.dtype(), [&]<class T>(T) {
    dispatch(table.device(), [&](auto device) {
      embedding_forward(device, ids.data<int32_t>(), table.data<T>(), y.data<T>(), ids.numel(), columns, scale);
    });
  });
  record("embedding", {table}, y, [ids = ids.detach(), table_shape, scale](const Tensor& dy) {
    Tensor d_table = Tensor::empty(table_shape, {dy.dtype(), dy.device()});
    dispatch_floating("embedding", dy.dtype(), [&]<class T>(T) {
      const EmbeddingBackward<T> arguments{.ids = ids.data<int32_t>(),
                                           .n = ids.numel(),
                                           .dy = dy.data<T>(),
                                           .d_table = d_table.data<T>(),
                                           .vocabulary = table_shape[0],
                                           .columns = table_shape[1],
                                           .scale = scale};
      dispatch(dy.device(), [&](auto device) { embedding_backward(device, arguments); });
    });
    return Gradients{d_table};
  });
  return y;
}

Tensor panel_embedding(const Tensor& ids, const PanelWeight& table, double scale) {
  const ProfileScope scope("embedding");
  check_ids("embedding", "the ids", ids);
  if (const int64_t i = first_outside_of(ids, table.out()); i >= 0)
    fail<DataError>("token id {} at position {} is outside the vocabulary of {}", ids.data<int32_t>()[i], i,
                    table.out());
  Tensor y = table.rows(ids.values<int32_t>());
  for (float& value : y.values<float>()) value = static_cast<float>(value * scale);
  return y;
}

Tensor add_rows(const Tensor& x, const Tensor& table, const Tensor& rows, const DropoutMask& mask) {
  const ProfileScope scope("add_rows");
  check_table("add_rows", table);
  check_ids("add_rows", "the rows", rows);
  check_dropout("add_rows", mask);
  if (!x.defined() || x.rank() != 2 || x.size(1) != table.size(1) || x.dtype() != table.dtype())
    fail<ShapeError>("add_rows: input {} {} does not fit the table {} {}", name_of(x.dtype()), x.shape().text(),
                     name_of(table.dtype()), table.shape().text());
  if (rows.size(0) != x.size(0))
    fail<ShapeError>("add_rows: input {} has {} rows but {} rows are named", x.shape().text(), x.size(0), rows.size(0));
  if (const int64_t i = first_outside_of(rows, table.size(0)); i >= 0)
    fail<DataError>("add_rows: row {} at position {} is outside the table of {}", rows.data<int32_t>()[i], i,
                    table.size(0));

  Tensor y = Tensor::empty_like(x);
  dispatch_floating("add_rows", x.dtype(), [&]<class T>(T) {
    const AddTableRows<T> arguments{.x = x.data<T>(),
                                    .table = table.data<T>(),
                                    .rows = rows.data<int32_t>(),
                                    .n = x.size(0),
                                    .columns = x.size(1),
                                    .mask = mask,
                                    .y = y.data<T>()};
    dispatch(x.device(), [&](auto device) { add_rows(device, arguments); });
  });
  record("add_rows", {x}, y, [mask](const Tensor& dy) { return Gradients{dropout(dy, mask)}; });
  return y;
}

}  // namespace attune
