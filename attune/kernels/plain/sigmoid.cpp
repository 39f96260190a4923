#include "attune/kernels/sigmoid.h"

#include <cmath>

namespace attune {

void sigmoid_forward(Plain, const Tensor& x, const Tensor& y) {
  dispatch_floating("sigmoid", x.dtype(), [&]<class T>(T) {
    for (int64_t i = 0; i < x.numel(); ++i)
      y.data<T>()[i] = static_cast<T>(1 / (1 + std::exp(-static_cast<double>(x.data<T>()[i]))));
  });
}

void sigmoid_backward(Plain, const Tensor& y, const Tensor& dy, const Tensor& dx) {
  dispatch_floating("sigmoid", y.dtype(), [&]<class T>(T) {
    for (int64_t i = 0; i < y.numel(); ++i) {
      const double value = y.data<T>()[i];
      dx.data<T>()[i] = static_cast<T>(dy.data<T>()[i] * value * (1 - value));
    }
  });
}

}  // namespace attune
