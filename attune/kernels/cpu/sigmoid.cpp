#include "attune/kernels/sigmoid.h"

#include <cmath>

#include "attune/base/parallel.h"

namespace attune {
namespace {

constexpr int64_t kSigmoidGrain = 1 << 12;  // elements of a piece: some ten microseconds

}  // namespace

void sigmoid_forward(Cpu, const Tensor& x, const Tensor& y) {
  dispatch_floating("sigmoid", x.dtype(), [&]<class T>(T) {
    const T* const from = x.data<T>();
    T* const to = y.data<T>();
    parallel_for(x.numel(), kSigmoidGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] = 1 / (1 + std::exp(-from[i]));
    });
  });
}

void sigmoid_backward(Cpu, const Tensor& y, const Tensor& dy, const Tensor& dx) {
  dispatch_floating("sigmoid", y.dtype(), [&]<class T>(T) {
    const T *const output = y.data<T>(), *const from = dy.data<T>();
    T* const to = dx.data<T>();
    parallel_for(y.numel(), kSigmoidGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] = from[i] * output[i] * (1 - output[i]);
    });
  });
}

}  // namespace attune
