#include "attune/kernels/sigmoid.h"

#include "attune/kernels/cuda/activation_functions.h"
#include "attune/kernels/cuda/runtime/launch.h"
#include "attune/kernels/for_dtype.h"

namespace attune {
namespace {

template <class T>
struct SigmoidForward {
  const T* x;
  T* y;
  ATTUNE_DEVICE void operator()(int64_t i) const { y[i] = cuda::sigmoid(x[i]); }
};

template <class T>
struct SigmoidBackward {
  const T* y;
  const T* dy;
  T* dx;
  ATTUNE_DEVICE void operator()(int64_t i) const { dx[i] = dy[i] * y[i] * (1 - y[i]); }
};

}  // namespace

void sigmoid_forward(Cuda device, const Tensor& x, const Tensor& y) {
  dispatch_floating("sigmoid", x.dtype(), [&]<class T>(T) {
    cuda::for_each_element(device, "sigmoid", x.numel(), SigmoidForward<T>{x.data<T>(), y.data<T>()});
  });
}

void sigmoid_backward(Cuda device, const Tensor& y, const Tensor& dy, const Tensor& dx) {
  dispatch_floating("sigmoid", y.dtype(), [&]<class T>(T) {
    cuda::for_each_element(device, "sigmoid", y.numel(), SigmoidBackward<T>{y.data<T>(), dy.data<T>(), dx.data<T>()});
  });
}

}  // namespace attune
