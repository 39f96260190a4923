#include "attune/ops/mean_pool.h"

#include <algorithm>

#include "attune/autograd/graph.h"
#include "attune/base/fail.h"
#include "attune/base/profile.h"

namespace attune {

Tensor mean_pool(const Tensor& x, const Sequences& sequences) {
  const ProfileScope scope("mean_pool");
  if (x.rank() != 2 || x.size(0) != sequences.total())
    fail<ShapeError>("mean_pool: x {} does not fit sequences of {} rows", x.shape().text(), sequences.total());
  const int64_t d = x.size(1);
  Tensor means = Tensor::zeros({sequences.count(), d}, {x.dtype(), x.device()});
  dispatch_floating("mean_pool", x.dtype(), [&]<class T>(T) {
    for (int64_t s = 0; s < sequences.count(); ++s) {
      T* mean = means.data<T>() + s * d;
      const T share = T{1} / static_cast<T>(std::max<int64_t>(1, sequences.length(s)));
      for (int64_t row = sequences.begin(s); row < sequences.begin(s) + sequences.length(s); ++row)
        for (int64_t c = 0; c < d; ++c) mean[c] += share * x.data<T>()[row * d + c];
    }
  });
  record("mean_pool", {x}, means, [sequences, d](const Tensor& dy) {
    Tensor dx = Tensor::empty({sequences.total(), d}, {dy.dtype(), dy.device()});
    dispatch_floating("mean_pool", dy.dtype(), [&]<class T>(T) {
      for (int64_t s = 0; s < sequences.count(); ++s) {
        const T* mean = dy.data<T>() + s * d;
        const T share = T{1} / static_cast<T>(std::max<int64_t>(1, sequences.length(s)));
        for (int64_t row = sequences.begin(s); row < sequences.begin(s) + sequences.length(s); ++row)
          for (int64_t c = 0; c < d; ++c) dx.data<T>()[row * d + c] = share * mean[c];
      }
    });
    return Gradients{dx};
  });
  return means;
}

}  // namespace attune
