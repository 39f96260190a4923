#include "attune/kernels/embedding.h"

#include "attune/kernels/cuda/dropout_bits.h"
#include "attune/kernels/cuda/runtime/launch.h"
#include "attune/kernels/cuda/scatter_rows.h"
#include "attune/kernels/for_dtype.h"

namespace attune {
namespace {

template <class Table, class T>
struct EmbeddingForward {
  const int32_t* ids;
  const Table* table;
  T* y;
  T scale;
  int64_t columns;
  ATTUNE_DEVICE void operator()(int64_t i) const {
    y[i] = static_cast<T>(table[ids[i / columns] * columns + i % columns]) * scale;
  }
};

// An element is a quad of columns.
template <class T>
struct AddRowsOfTable {
  const T* x;
  const T* table;
  const int32_t* rows;
  T* y;
  int64_t columns, quads;
  cuda::DropoutBits mask;
  ATTUNE_DEVICE void operator()(int64_t i) const {
    const int64_t row = i / quads, quad = i % quads;
    const auto scale = static_cast<T>(mask.scale());
    cuda::for_columns_of_quad(columns, quad, mask.quad(row, quad), [&](int64_t c, bool kept) {
      const T sum = x[row * columns + c] + table[rows[row] * columns + c];
      y[row * columns + c] = kept ? sum * scale : T{0};
    });
  }
};

}  // namespace

void embedding_forward(Cuda device, const Tensor& ids, const Tensor& table, double scale, const Tensor& y) {
  dispatch_floating("embedding", y.dtype(), [&]<class T>(T) {
    const auto gather = [&]<class Table>(const Table* rows) {
      cuda::for_each_element(
          device, "embedding", y.numel(),
          EmbeddingForward<Table, T>{ids.data<int32_t>(), rows, y.data<T>(), static_cast<T>(scale), table.size(1)});
    };
    table.dtype() == DType::bf16 ? gather(table.data<bfloat16>()) : gather(table.data<T>());
  });
}

void embedding_backward(Cuda device, const Indices& ids, const Tensor& dy, double scale, const Tensor& d_table) {
  cuda::scatter_rows(device, "embedding", ids, dy, scale, d_table);
}

void add_rows(Cuda device, const AddRows& a) {
  const int64_t columns = a.x.size(1), quads = cuda::quads_of(columns);
  dispatch_floating("add_rows", a.x.dtype(), [&]<class T>(T) {
    cuda::for_each_element(device, "add_rows", a.x.size(0) * quads,
                           AddRowsOfTable<T>{a.x.data<T>(), a.table.data<T>(), a.rows.data<int32_t>(), a.y.data<T>(),
                                             columns, quads, cuda::DropoutBits(a.mask)});
  });
}

}  // namespace attune
