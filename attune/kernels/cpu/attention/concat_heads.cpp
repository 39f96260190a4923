#include "attune/kernels/attention/concat_heads.h"

#include <algorithm>

#include "attune/base/parallel.h"
#include "attune/kernels/row_grain.h"

namespace attune {

void concat_heads_forward(Cpu, const Tensor& a, const Tensor& b, const Tensor& out) {
  const int64_t n = a.size(0), heads = a.size(1), d_a = a.size(2), d_b = b.size(2), d = d_a + d_b;
  const int64_t share = b.size(1) == 1 ? heads : 1;  // heads of a for each head of b
  dispatch_floating("concat_heads", a.dtype(), [&]<class T>(T) {
    const T *from_a = a.data<T>(), *from_b = b.data<T>();
    T* to = out.data<T>();
    parallel_for(n * heads, row_grain(d), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        std::copy_n(from_a + i * d_a, d_a, to + i * d);
        std::copy_n(from_b + i / share * d_b, d_b, to + i * d + d_a);
      }
    });
  });
}

void concat_heads_backward(Cpu, const Tensor& d_out, const Tensor& da, const Tensor& db) {
  const int64_t n = da.size(0), heads = da.size(1), d_a = da.size(2), d_b = db.size(2), d = d_a + d_b;
  const int64_t share = db.size(1) == 1 ? heads : 1;
  dispatch_floating("concat_heads", d_out.dtype(), [&]<class T>(T) {
    const T* from = d_out.data<T>();
    T *to_a = da.data<T>(), *to_b = db.data<T>();
    std::fill_n(to_b, db.numel(), T{0});
    parallel_for(n, row_grain(heads * d), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin * heads; i < end * heads; ++i) {
        std::copy_n(from + i * d, d_a, to_a + i * d_a);
        T* sum = to_b + i / share * d_b;
        for (int64_t c = 0; c < d_b; ++c) sum[c] += from[i * d + d_a + c];
      }
    });
  });
}

}  // namespace attune
