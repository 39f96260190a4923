#include "attune/kernels/attention/mean_over_heads.h"

namespace attune {

void mean_over_heads(Plain, const Tensor& weights, const Tensor& mean) {
  const int64_t heads = weights.size(1), keys = weights.size(2);
  dispatch_floating("mean_over_heads", weights.dtype(), [&]<class T>(T) {
    for (int64_t i = 0; i < mean.numel(); ++i) {
      double sum = 0;
      for (int64_t head = 0; head < heads; ++head)
        sum += static_cast<double>(weights.data<T>()[(i / keys * heads + head) * keys + i % keys]);
      mean.data<T>()[i] = static_cast<T>(sum / static_cast<double>(heads));
    }
  });
}

}  // namespace attune
