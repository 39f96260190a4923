#include "attune/kernels/gemm/per_head_matmul.h"

namespace attune {
namespace {

void multiply(const Tensor& x, const Tensor& weight, const Tensor& y, bool transposed) {
  const int64_t rows = x.size(0), heads = x.size(1), in = x.size(2), out = y.size(2);
  dispatch_floating("per_head_matmul", x.dtype(), [&]<class T>(T) {
    for (int64_t i = 0; i < rows * heads; ++i) {
      const T* const w = weight.data<T>() + i % heads * in * out;
      for (int64_t o = 0; o < out; ++o) {
        double sum = 0;
        for (int64_t k = 0; k < in; ++k)
          sum += static_cast<double>(x.data<T>()[i * in + k]) * (transposed ? w[o * in + k] : w[k * out + o]);
        y.data<T>()[i * out + o] = static_cast<T>(sum);
      }
    }
  });
}

}  // namespace

void per_head_matmul(Plain, const Tensor& x, const Tensor& weight, const Tensor& y) {
  multiply(x, weight, y, false);
}

void per_head_matmul_transposed(Plain, const Tensor& x, const Tensor& weight, const Tensor& y) {
  multiply(x, weight, y, true);
}

}  // namespace attune
