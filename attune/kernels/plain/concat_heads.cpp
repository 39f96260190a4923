#include "attune/kernels/attention/concat_heads.h"

namespace attune {

void concat_heads_forward(Plain, const Tensor& a, const Tensor& b, const Tensor& out) {
  const int64_t heads = a.size(1), b_heads = b.size(1), d_a = a.size(2), d_b = b.size(2);
  dispatch_floating("concat_heads", a.dtype(), [&]<class T>(T) {
    T* to = out.data<T>();
    for (int64_t row = 0; row < a.size(0); ++row) {
      for (int64_t head = 0; head < heads; ++head) {
        const int64_t b_head = b_heads == 1 ? 0 : head;
        for (int64_t c = 0; c < d_a; ++c) *to++ = a.data<T>()[(row * heads + head) * d_a + c];
        for (int64_t c = 0; c < d_b; ++c) *to++ = b.data<T>()[(row * b_heads + b_head) * d_b + c];
      }
    }
  });
}

void concat_heads_backward(Plain, const Tensor& d_out, const Tensor& da, const Tensor& db) {
  const int64_t heads = da.size(1), b_heads = db.size(1), d_a = da.size(2), d_b = db.size(2), d = d_a + d_b;
  dispatch_floating("concat_heads", d_out.dtype(), [&]<class T>(T) {
    const T* from = d_out.data<T>();
    for (int64_t i = 0; i < da.numel(); ++i) da.data<T>()[i] = from[i / d_a * d + i % d_a];
    for (int64_t i = 0; i < db.numel(); ++i) {
      const int64_t row = i / d_b / b_heads, c = i % d_b;
      const int64_t first = b_heads == 1 ? 0 : i / d_b % b_heads, last = b_heads == 1 ? heads : first + 1;
      double sum = 0;
      for (int64_t head = first; head < last; ++head)
        sum += static_cast<double>(from[(row * heads + head) * d + d_a + c]);
      db.data<T>()[i] = static_cast<T>(sum);
    }
  });
}

}  // namespace attune
