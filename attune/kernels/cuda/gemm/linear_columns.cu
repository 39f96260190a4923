#include "attune/kernels/gemm/linear_columns.h"

#include "attune/kernels/cuda/gemm/column_lists.h"
#include "attune/kernels/cuda/gemm/panel_products.h"
#include "attune/kernels/cuda/numbers.h"
#include "attune/kernels/cuda/runtime/launch.h"
#include "attune/kernels/for_dtype.h"

namespace attune {
namespace {

template <class T, class Weight>
struct LinearColumns {
  const T* x;
  const Weight* weight;
  const T* bias;  // or null
  cuda::ColumnLists lists;
  T* y;
  int64_t in, width;
  ATTUNE_DEVICE void operator()(int64_t i) const {
    const int64_t row = i / width, column = lists.column(row, i % width);
    if (column < 0) {
      y[i] = -cuda::infinity<T>();
      return;
    }
    const Weight* const of_column = weight + column * in;
    const T product = cuda::chained_dot<T>(x + row * in, in, [&](int64_t k) { return of_column[k]; });
    y[i] = product + (bias != nullptr ? bias[column] : T{0});
  }
};

}  // namespace

void linear_columns(Cuda device, const Tensor& x, const Tensor& weight, const Tensor& bias,
                    std::span<const ColumnGroup> groups, const Tensor& y) {
  const cuda::ColumnTables tables(device, groups, y.size(0));
  dispatch_floating("linear_columns", x.dtype(), [&]<class T>(T) {
    const auto multiply = [&]<class Weight>(const Weight* numbers) {
      cuda::for_each_element(device, "linear_columns", y.numel(),
                             LinearColumns<T, Weight>{x.data<T>(), numbers, data_or_null<T>(bias), tables.lists(),
                                                      y.data<T>(), x.size(1), y.size(1)});
    };
    weight.dtype() == DType::bf16 ? multiply(weight.data<bfloat16>()) : multiply(weight.data<T>());
  });
}

}  // namespace attune
