#include "attune/kernels/gather.h"

#include "attune/kernels/cuda/runtime/launch.h"
#include "attune/kernels/cuda/scatter_rows.h"

namespace attune {
namespace {

template <class T>
struct Gather {
  const T* x;
  const int32_t* rows;
  T* y;
  int64_t columns;
  ATTUNE_DEVICE void operator()(int64_t i) const {
    const int64_t row = rows[i / columns];
    y[i] = row >= 0 ? x[row * columns + i % columns] : T{0};
  }
};

}  // namespace

void gather_forward(Cuda device, const Tensor& x, const Tensor& rows, const Tensor& y) {
  dispatch_floating("gather", x.dtype(), [&]<class T>(T) {
    cuda::for_each_element(device, "gather", y.numel(),
                           Gather<T>{x.data<T>(), rows.data<int32_t>(), y.data<T>(), x.size(1)});
  });
}

void gather_backward(Cuda device, const Tensor& dy, const Indices& rows, const Tensor& dx) {
  cuda::scatter_rows(device, "gather", rows, dy, 1, dx);
}

}  // namespace attune
