#include "attune/kernels/scale.h"

namespace attune {

void scale_in_place(Plain, const Tensor& x, double factor) {
  dispatch_floating("scale", x.dtype(), [&]<class T>(T) {
    for (T& value : x.values<T>()) value *= static_cast<T>(factor);
  });
}

}  // namespace attune
