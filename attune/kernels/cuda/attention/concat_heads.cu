#include "attune/kernels/attention/concat_heads.h"

#include "attune/kernels/cuda/runtime/launch.h"

namespace attune {
namespace {

struct Sizes {
  int64_t heads, b_heads, d_a, d_b;
};

Sizes sizes_of(const Tensor& a, const Tensor& b) {
  return {a.size(1), b.size(1), a.size(2), b.size(2)};
}

template <class T>
struct Concat {
  const T* a;
  const T* b;
  T* out;
  Sizes size;
  ATTUNE_DEVICE void operator()(int64_t i) const {
    const int64_t d = size.d_a + size.d_b, c = i % d, head = i / d;
    const int64_t b_head = size.b_heads == 1 ? head / size.heads : head;
    out[i] = c < size.d_a ? a[head * size.d_a + c] : b[b_head * size.d_b + c - size.d_a];
  }
};

template <class T>
struct SplitA {
  const T* d_out;
  T* da;
  Sizes size;
  ATTUNE_DEVICE void operator()(int64_t i) const { da[i] = d_out[i / size.d_a * (size.d_a + size.d_b) + i % size.d_a]; }
};

template <class T>
struct SplitB {
  const T* d_out;
  T* db;
  Sizes size;
  ATTUNE_DEVICE void operator()(int64_t i) const {
    const int64_t d = size.d_a + size.d_b, head = i / size.d_b, c = size.d_a + i % size.d_b;
    if (size.b_heads != 1) {
      db[i] = d_out[head * d + c];
      return;
    }
    T sum = 0;
    for (int64_t h = 0; h < size.heads; ++h) sum += d_out[(head * size.heads + h) * d + c];
    db[i] = sum;
  }
};

}  // namespace

void concat_heads_forward(Cuda device, const Tensor& a, const Tensor& b, const Tensor& out) {
  dispatch_floating("concat_heads", a.dtype(), [&]<class T>(T) {
    cuda::for_each_element(device, "concat_heads", out.numel(),
                           Concat<T>{a.data<T>(), b.data<T>(), out.data<T>(), sizes_of(a, b)});
  });
}

void concat_heads_backward(Cuda device, const Tensor& d_out, const Tensor& da, const Tensor& db) {
  dispatch_floating("concat_heads", d_out.dtype(), [&]<class T>(T) {
    cuda::for_each_element(device, "concat_heads", da.numel(),
                           SplitA<T>{d_out.data<T>(), da.data<T>(), sizes_of(da, db)});
    cuda::for_each_element(device, "concat_heads", db.numel(),
                           SplitB<T>{d_out.data<T>(), db.data<T>(), sizes_of(da, db)});
  });
}

}  // namespace attune
