#include "attune/kernels/gated_activation.h"

#include "attune/kernels/cuda/activation_functions.h"
#include "attune/kernels/cuda/numbers.h"
#include "attune/kernels/cuda/runtime/launch.h"
#include "attune/kernels/for_dtype.h"

namespace attune {
namespace {

// x has rows (gate, up) of 2 d numbers, y rows of d.
template <class T>
struct GatedForward {
  Activation activation;
  const T* x;
  T* y;
  int64_t d;
  ATTUNE_DEVICE void operator()(int64_t i) const {
    const T* const gate = x + i / d * 2 * d + i % d;
    y[i] = static_cast<T>(cuda::activation_of(activation, cuda::widened(gate[0])) * cuda::widened(gate[d]));
  }
};

template <class T>
struct GatedBackward {
  Activation activation;
  const T* x;
  const T* dy;
  T* dx;
  int64_t d;
  ATTUNE_DEVICE void operator()(int64_t i) const {
    const int64_t at = i / d * 2 * d + i % d;
    const auto gate = cuda::widened(x[at]), up = cuda::widened(x[at + d]), g = cuda::widened(dy[i]);
    dx[at] = static_cast<T>(g * up * cuda::slope_of(activation, gate));
    dx[at + d] = static_cast<T>(g * cuda::activation_of(activation, gate));
  }
};

}  // namespace

void gated_activation_forward(Cuda device, Activation activation, const Tensor& x, const Tensor& y) {
  for_storage_dtype("gated_activation", x.dtype(), [&]<class T>(T) {
    cuda::for_each_element(device, "gated_activation", y.numel(),
                           GatedForward<T>{activation, x.data<T>(), y.data<T>(), y.size(-1)});
  });
}

void gated_activation_backward(Cuda device, Activation activation, const Tensor& x, const Tensor& dy,
                               const Tensor& dx) {
  for_storage_dtype("gated_activation", x.dtype(), [&]<class T>(T) {
    cuda::for_each_element(device, "gated_activation", dy.numel(),
                           GatedBackward<T>{activation, x.data<T>(), dy.data<T>(), dx.data<T>(), dy.size(-1)});
  });
}

}  // namespace attune
