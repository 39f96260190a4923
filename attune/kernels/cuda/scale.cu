#include "attune/kernels/scale.h"

#include "attune/kernels/cuda/runtime/launch.h"

namespace attune {
namespace {

template <class T>
struct Scale {
  T* x;
  T factor;
  ATTUNE_DEVICE void operator()(int64_t i) const { x[i] *= factor; }
};

}  // namespace

void scale(Cuda device, const Tensor& x, double factor) {
  dispatch_floating("scale", x.dtype(), [&]<class T>(T) {
    cuda::for_each_element(device, "scale", x.numel(), Scale<T>{x.data<T>(), static_cast<T>(factor)});
  });
}

}  // namespace attune
