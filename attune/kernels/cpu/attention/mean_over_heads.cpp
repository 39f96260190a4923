#include "attune/kernels/attention/mean_over_heads.h"

#include <algorithm>

namespace attune {

void mean_over_heads(Cpu, const Tensor& weights, const Tensor& mean) {
  const int64_t heads = weights.size(1), keys = weights.size(2);
  dispatch_floating("mean_over_heads", weights.dtype(), [&]<class T>(T) {
    const T* from = weights.data<T>();
    T* to = mean.data<T>();
    std::fill_n(to, mean.numel(), T{0});
    for (int64_t row = 0; row < weights.size(0); ++row, to += keys) {
      for (int64_t head = 0; head < heads; ++head, from += keys) {
        for (int64_t j = 0; j < keys; ++j) to[j] += from[j] / static_cast<T>(heads);
      }
    }
  });
}

}  // namespace attune
