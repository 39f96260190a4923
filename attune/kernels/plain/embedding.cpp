#include "attune/kernels/embedding.h"

namespace attune {

void embedding_forward(Plain, const Tensor& ids, const Tensor& table, double scale, const Tensor& y) {
  const int64_t columns = table.size(1);
  dispatch_floating("embedding", y.dtype(), [&]<class T>(T) {
    const auto gather = [&](const auto* rows) {
      for (int64_t i = 0; i < ids.numel(); ++i)
        for (int64_t c = 0; c < columns; ++c)
          y.data<T>()[i * columns + c] =
              static_cast<T>(rows[ids.data<int32_t>()[i] * columns + c]) * static_cast<T>(scale);
    };
    table.dtype() == DType::bf16 ? gather(table.data<bfloat16>()) : gather(table.data<T>());
  });
}

void embedding_backward(Plain, const Indices& ids, const Tensor& dy, double scale, const Tensor& d_table) {
  const int64_t columns = d_table.size(1);
  dispatch_floating("embedding", dy.dtype(), [&]<class T>(T) {
    for (T& element : d_table.values<T>()) element = 0;
    for (int64_t i = 0; i < ids.size(); ++i)
      for (int64_t c = 0; c < columns; ++c)
        d_table.data<T>()[ids[i] * columns + c] += dy.data<T>()[i * columns + c] * static_cast<T>(scale);
  });
}

void add_rows(Plain, const AddRows& a) {
  const int64_t columns = a.x.size(1);
  dispatch_floating("add_rows", a.x.dtype(), [&]<class T>(T) {
    for (int64_t i = 0; i < a.x.size(0); ++i) {
      for (int64_t c = 0; c < columns; ++c) {
        const T sum = a.x.data<T>()[i * columns + c] + a.table.data<T>()[a.rows.data<int32_t>()[i] * columns + c];
        const T scale = static_cast<T>(a.mask.active() ? a.mask.scale() : 1);
        a.y.data<T>()[i * columns + c] = keep_mask(a.mask, i, c) ? sum * scale : T{0};
      }
    }
  });
}

}  // namespace attune
