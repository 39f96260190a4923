#include "attune/kernels/gemm/column_sums.h"

#include "attune/kernels/rows.h"

namespace attune {

void column_sums(Plain, const Tensor& x, const Tensor& out, bool accumulate) {
  const auto [rows, columns] = as_rows(x);
  dispatch_floating("column_sums", x.dtype(), [&, rows = rows, columns = columns]<class T>(T) {
    for (int64_t j = 0; j < columns; ++j) {
      double sum = accumulate ? out.data<T>()[j] : 0;
      for (int64_t r = 0; r < rows; ++r) sum += x.data<T>()[r * columns + j];
      out.data<T>()[j] = static_cast<T>(sum);
    }
  });
}

}  // namespace attune
