#include "attune/kernels/attention/mean_over_heads.h"

#include "attune/kernels/cuda/runtime/launch.h"

namespace attune {
namespace {

template <class T>
struct MeanOverHeads {
  const T* weights;
  T* mean;
  int64_t heads, keys;
  ATTUNE_DEVICE void operator()(int64_t i) const {
    T sum = 0;
    for (int64_t head = 0; head < heads; ++head) sum += weights[(i / keys * heads + head) * keys + i % keys];
    mean[i] = sum / static_cast<T>(heads);
  }
};

}  // namespace

void mean_over_heads(Cuda device, const Tensor& weights, const Tensor& mean) {
  dispatch_floating("mean_over_heads", weights.dtype(), [&]<class T>(T) {
    cuda::for_each_element(device, "mean_over_heads", mean.numel(),
                           MeanOverHeads<T>{weights.data<T>(), mean.data<T>(), weights.size(1), weights.size(2)});
  });
}

}  // namespace attune
