#include "attune/ops/concat_heads.h"

#include <algorithm>

#include "attune/autograd/graph.h"
#include "attune/base/fail.h"
#include "attune/base/parallel.h"
#include "attune/base/profile.h"
#include "attune/kernels/row_grain.h"
#include "attune/ops/rows.h"

namespace attune {
namespace {

struct Sizes {
  int64_t n, heads, d_a, b_heads, d_b;
};

// out [n, heads, d_a + d_b]
template <class T>
void join(const Sizes& s, const T* a, const T* b, T* out) {
  const int64_t d = s.d_a + s.d_b;
  parallel_for(s.n * s.heads, row_grain(d), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      std::copy_n(a + i * s.d_a, s.d_a, out + i * d);
      std::copy_n(b + (s.b_heads == 1 ? i / s.heads : i) * s.d_b, s.d_b, out + i * d + s.d_a);
    }
  });
}

// The gradient of a b that was given to every head is the sum over the heads.
template <class T>
void split(const Sizes& s, const T* joined, T* a, T* b) {
  const int64_t d = s.d_a + s.d_b;
  std::fill_n(b, s.n * s.b_heads * s.d_b, T{0});
  parallel_for(s.n, row_grain(s.heads * d), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin * s.heads; i < end * s.heads; ++i) {
      const T* from = joined + i * d;
      T* to = b + (s.b_heads == 1 ? i / s.heads : i) * s.d_b;
      std::copy_n(from, s.d_a, a + i * s.d_a);
      for (int64_t c = 0; c < s.d_b; ++c) to[c] += from[s.d_a + c];
    }
  });
}

}  // namespace

Tensor concat_heads(const Tensor& a, const Tensor& b) {
  const ProfileScope scope("concat_heads");
  if (!a.defined() || !b.defined() || a.rank() != 3 || b.rank() != 3)
    fail<ShapeError>("concat_heads: needs a and b as [rows, heads, d], found {} and {}", a.shape().text(),
                     b.shape().text());
  if (a.dtype() != b.dtype())
    fail<ShapeError>("concat_heads: a is {} but b is {}", name_of(a.dtype()), name_of(b.dtype()));
  if (a.size(0) != b.size(0))
    fail<ShapeError>("concat_heads: a {} has {} rows but b {} has {}", a.shape().text(), a.size(0), b.shape().text(),
                     b.size(0));
  if (b.size(1) != a.size(1) && b.size(1) != 1)
    fail<ShapeError>("concat_heads: a {} has {} heads but b {} has {}, needs as many or 1", a.shape().text(), a.size(1),
                     b.shape().text(), b.size(1));
  const Sizes sizes{.n = a.size(0), .heads = a.size(1), .d_a = a.size(2), .b_heads = b.size(1), .d_b = b.size(2)};
  Tensor out = Tensor::empty({sizes.n, sizes.heads, sizes.d_a + sizes.d_b}, {a.dtype(), a.device()});
  dispatch_floating("concat_heads", a.dtype(),
                    [&]<class T>(T) { join(sizes, a.data<T>(), b.data<T>(), out.data<T>()); });
  record("concat_heads", {a, b}, out, [sizes](const Tensor& dy) {
    const TensorOptions like{dy.dtype(), dy.device()};
    Gradients gradients{Tensor::empty({sizes.n, sizes.heads, sizes.d_a}, like),
                        Tensor::empty({sizes.n, sizes.b_heads, sizes.d_b}, like)};
    dispatch_floating("concat_heads", dy.dtype(),
                      [&]<class T>(T) { split(sizes, dy.data<T>(), gradients[0].data<T>(), gradients[1].data<T>()); });
    return gradients;
  });
  return out;
}

}  // namespace attune
