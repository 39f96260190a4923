#include "attune/kernels/activation.h"

#include "attune/kernels/cuda/activation_functions.h"
#include "attune/kernels/cuda/fours.h"
#include "attune/kernels/cuda/numbers.h"
#include "attune/kernels/cuda/runtime/launch.h"
#include "attune/kernels/for_dtype.h"

namespace attune {
namespace {

template <class T>
struct ActivationForward {
  Activation activation;
  const T* x;
  T* y;
  ATTUNE_DEVICE void operator()(int64_t i) const { y[i] = of(x[i]); }
  bool has_fours() const { return cuda::has_fours(x) && cuda::has_fours(y); }
  ATTUNE_DEVICE void fours(int64_t i) const {
    cuda::Four<T> values = cuda::read_four(x, i);
    ATTUNE_UNROLL
    for (T& value : values.value) value = of(value);
    cuda::write_four(y, i, values);
  }
  ATTUNE_DEVICE T of(T value) const { return static_cast<T>(cuda::activation_of(activation, cuda::widened(value))); }
};

template <class T>
struct ActivationBackward {
  Activation activation;
  const T* saved;
  const T* dy;
  T* dx;
  ATTUNE_DEVICE void operator()(int64_t i) const { dx[i] = dy[i] * cuda::slope_of(activation, saved[i]); }
};

}  // namespace

void activation_forward(Cuda device, Activation activation, const Tensor& x, const Tensor& y) {
  for_storage_dtype("activation", x.dtype(), [&]<class T>(T) {
    cuda::for_each_element(device, "activation", x.numel(), ActivationForward<T>{activation, x.data<T>(), y.data<T>()});
  });
}

void activation_backward(Cuda device, Activation activation, const Tensor& saved, const Tensor& dy, const Tensor& dx) {
  dispatch_floating("activation", dy.dtype(), [&]<class T>(T) {
    cuda::for_each_element(device, "activation", dy.numel(),
                           ActivationBackward<T>{activation, saved.data<T>(), dy.data<T>(), dx.data<T>()});
  });
}

}  // namespace attune
