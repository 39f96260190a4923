#include "attune/kernels/activation.h"

#include "attune/kernels/for_dtype.h"
#include "attune/kernels/plain/activation_functions.h"

namespace attune {

void activation_forward(Plain, Activation activation, const Tensor& x, const Tensor& y) {
  for_storage_dtype("activation", x.dtype(), [&]<class T>(T) {
    for (int64_t i = 0; i < x.numel(); ++i)
      y.data<T>()[i] = static_cast<T>(plain::activation_of(activation, x.data<T>()[i]));
  });
}

void activation_backward(Plain, Activation activation, const Tensor& saved, const Tensor& dy, const Tensor& dx) {
  dispatch_floating("activation", dy.dtype(), [&]<class T>(T) {
    for (int64_t i = 0; i < dy.numel(); ++i)
      dx.data<T>()[i] = static_cast<T>(dy.data<T>()[i] * plain::slope_of(activation, saved.data<T>()[i]));
  });
}

}  // namespace attune
