#include "attune/tensor/memory.h"

#include "attune/kernels/cuda/fours.h"
#include "attune/kernels/cuda/runtime/launch.h"
#include "attune/kernels/for_dtype.h"

namespace attune {
namespace {

template <class T>
struct Fill {
  T* x;
  T value;
  ATTUNE_DEVICE void operator()(int64_t i) const { x[i] = value; }
};

template <class From, class To>
struct Convert {
  const From* from;
  To* to;
  ATTUNE_DEVICE void operator()(int64_t i) const { to[i] = static_cast<To>(from[i]); }
  bool has_fours() const { return cuda::has_fours(from) && cuda::has_fours(to); }
  ATTUNE_DEVICE void fours(int64_t i) const {
    const cuda::Four<From> x = cuda::read_four(from, i);
    cuda::Four<To> y;
    ATTUNE_UNROLL
    for (int n = 0; n < 4; ++n) y.value[n] = static_cast<To>(x.value[n]);
    cuda::write_four(to, i, y);
  }
};

template <class T>
struct Swap {
  T* a;
  T* b;
  ATTUNE_DEVICE void operator()(int64_t i) const {
    const T kept = a[i];
    a[i] = b[i];
    b[i] = kept;
  }
};

template <class T>
struct Add {
  T* accumulator;
  const T* x;
  ATTUNE_DEVICE void operator()(int64_t i) const { accumulator[i] += x[i]; }
  bool has_fours() const { return cuda::has_fours(accumulator) && cuda::has_fours(x); }
  ATTUNE_DEVICE void fours(int64_t i) const {
    cuda::Four<T> sum = cuda::read_four<T>(accumulator, i);
    const cuda::Four<T> added = cuda::read_four(x, i);
    ATTUNE_UNROLL
    for (int n = 0; n < 4; ++n) sum.value[n] += added.value[n];
    cuda::write_four(accumulator, i, sum);
  }
};

template <class T>
struct FirstNotFinite {
  const T* x;
  unsigned long long* first;
  ATTUNE_DEVICE void operator()(int64_t i) const {
    if (!(x[i] - x[i] == T{0})) cuda::atomic_min(first, static_cast<unsigned long long>(i));
  }
};

}  // namespace

void fill(Cuda device, const Tensor& x, double value) {
  for_any_dtype(x.dtype(), [&]<class T>(T) {
    cuda::for_each_element(device, "fill", x.numel(), Fill<T>{x.data<T>(), static_cast<T>(value)});
  });
}

void zero(Cuda device, const Tensor& x) {
  cuda::clear(device, x.raw(), x.bytes());
}

void copy(Cuda device, const Tensor& from, const Tensor& to) {
  cuda::copy_on_device(device, from.raw(), to.raw(), to.bytes());
}

void convert(Cuda device, const Tensor& from, const Tensor& to) {
  for_any_dtype(from.dtype(), [&]<class From>(From) {
    for_any_dtype(to.dtype(), [&]<class To>(To) {
      cuda::for_each_element(device, "convert", to.numel(), Convert<From, To>{from.data<From>(), to.data<To>()});
    });
  });
}

void swap_values(Cuda device, const Tensor& a, const Tensor& b) {
  for_any_dtype(a.dtype(), [&]<class T>(T) {
    cuda::for_each_element(device, "swap_values", a.numel(), Swap<T>{a.data<T>(), b.data<T>()});
  });
}

void add(Cuda device, const Tensor& accumulator, const Tensor& x) {
  dispatch_floating("add", x.dtype(), [&]<class T>(T) {
    cuda::for_each_element(device, "add", x.numel(), Add<T>{accumulator.data<T>(), x.data<T>()});
  });
}

int64_t first_not_finite(Cuda device, const Tensor& x) {
  const Tensor first = Tensor::full({1}, -1, {DType::i64, Device(device)});
  dispatch_floating("first_not_finite", x.dtype(), [&]<class T>(T) {
    cuda::for_each_element(
        device, "first_not_finite", x.numel(),
        FirstNotFinite<T>{x.data<T>(), reinterpret_cast<unsigned long long*>(first.data<int64_t>())});
  });
  int64_t result = -1;
  cuda::copy_to_host(device, first.raw(), &result, sizeof(result));
  return result;
}

void copy_from_host(Cuda device, const std::byte* from, const Tensor& x) {
  cuda::copy_from_host(device, from, x.raw(), x.bytes());
}

void copy_to_host(Cuda device, const Tensor& x, std::byte* to) {
  cuda::copy_to_host(device, x.raw(), to, x.bytes());
}

}  // namespace attune
