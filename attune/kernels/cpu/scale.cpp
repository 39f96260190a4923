#include "attune/kernels/scale.h"

#include "attune/base/parallel.h"

namespace attune {

void scale_in_place(Cpu, const Tensor& x, double factor) {
  dispatch_floating("scale", x.dtype(), [&]<class T>(T) {
    T* const values = x.data<T>();
    parallel_for(x.numel(), 1 << 15, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) values[i] *= static_cast<T>(factor);
    });
  });
}

}  // namespace attune
