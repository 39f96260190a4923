#include "attune/kernels/gemm/column_sums.h"

#include "attune/kernels/cuda/gemm/column_sums.h"
#include "attune/kernels/rows.h"

namespace attune {
namespace {

template <class T>
struct Element : cuda::ReadElement<T> {
  const T* x;
  int64_t columns;
  Element(const T* values, int64_t of_row) : x(values), columns(of_row) {}
  ATTUNE_DEVICE T read(int64_t row, int64_t column) const { return x[row * columns + column]; }
  bool has_fours() const { return cuda::has_fours(x); }
  ATTUNE_DEVICE cuda::Four<T> read_four(int64_t row, int64_t column) const {
    return cuda::read_four(x, row * columns + column);
  }
};

template <class T>
struct Store {
  T* out;
  bool accumulate;
  ATTUNE_DEVICE void operator()(int64_t column, T sum) const { out[column] = accumulate ? out[column] + sum : sum; }
};

}  // namespace

void column_sums(Cuda device, const Tensor& x, const Tensor& out, bool accumulate) {
  const Rows size = as_rows(x);
  dispatch_floating("column_sums", x.dtype(), [&]<class T>(T) {
    cuda::sum_columns<T>(device, "column_sums", size.rows, size.columns, Element<T>(x.data<T>(), size.columns),
                         Store<T>{out.data<T>(), accumulate});
  });
}

}  // namespace attune
