#include "attune/kernels/mean_pool.h"

#include "attune/kernels/cuda/runtime/launch.h"
#include "attune/kernels/cuda/tables.h"

namespace attune {
namespace {

template <class T>
ATTUNE_DEVICE T share_of(int32_t begin, int32_t end) {
  return T{1} / static_cast<T>(end > begin ? end - begin : 1);
}

template <class T>
struct MeanForward {
  const T* x;
  const int32_t* offsets;
  T* means;
  int64_t columns;
  ATTUNE_DEVICE void operator()(int64_t i) const {
    const int32_t begin = offsets[i / columns], end = offsets[i / columns + 1];
    const T share = share_of<T>(begin, end);
    T mean = 0;
    for (int64_t row = begin; row < end; ++row) mean += share * x[row * columns + i % columns];
    means[i] = mean;
  }
};

// An element is a column of a sequence.
template <class T>
struct MeanBackward {
  const T* d_means;
  const int32_t* offsets;
  T* dx;
  int64_t columns;
  ATTUNE_DEVICE void operator()(int64_t i) const {
    const int32_t begin = offsets[i / columns], end = offsets[i / columns + 1];
    const T gradient = share_of<T>(begin, end) * d_means[i];
    for (int64_t row = begin; row < end; ++row) dx[row * columns + i % columns] = gradient;
  }
};

}  // namespace

void mean_pool_forward(Cuda device, const Tensor& x, std::span<const int32_t> offsets, const Tensor& means) {
  const Tensor table = cuda::on_device(device, offsets);
  dispatch_floating("mean_pool", x.dtype(), [&]<class T>(T) {
    cuda::for_each_element(device, "mean_pool", means.numel(),
                           MeanForward<T>{x.data<T>(), table.data<int32_t>(), means.data<T>(), x.size(1)});
  });
}

void mean_pool_backward(Cuda device, const Tensor& d_means, std::span<const int32_t> offsets, const Tensor& dx) {
  const Tensor table = cuda::on_device(device, offsets);
  dispatch_floating("mean_pool", dx.dtype(), [&]<class T>(T) {
    cuda::for_each_element(device, "mean_pool", d_means.numel(),
                           MeanBackward<T>{d_means.data<T>(), table.data<int32_t>(), dx.data<T>(), dx.size(1)});
  });
}

}  // namespace attune
