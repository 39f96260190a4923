#include "attune/tensor/memory.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "attune/base/parallel.h"
#include "attune/kernels/for_dtype.h"

namespace attune {
namespace {

constexpr int64_t kGrain = 1 << 15;  // elements
constexpr int64_t kByteGrain = 1 << 18;

void copy_bytes(const void* from, void* to, size_t bytes) {
  parallel_for(static_cast<int64_t>(bytes), kByteGrain, [&](int64_t begin, int64_t end) {
    std::memcpy(static_cast<std::byte*>(to) + begin, static_cast<const std::byte*>(from) + begin,
                static_cast<size_t>(end - begin));
  });
}

}  // namespace

void fill(Cpu, const Tensor& x, double value) {
  for_any_dtype(x.dtype(), [&]<class T>(T) {
    for (T& element : x.values<T>()) element = static_cast<T>(value);
  });
}

void zero(Cpu, const Tensor& x) {
  parallel_for(static_cast<int64_t>(x.bytes()), kByteGrain, [&](int64_t begin, int64_t end) {
    std::memset(static_cast<std::byte*>(x.raw()) + begin, 0, static_cast<size_t>(end - begin));
  });
}

void copy(Cpu, const Tensor& from, const Tensor& to) {
  copy_bytes(from.raw(), to.raw(), to.bytes());
}

void convert(Cpu, const Tensor& from, const Tensor& to) {
  for_any_dtype(from.dtype(), [&]<class From>(From) {
    for_any_dtype(to.dtype(), [&]<class To>(To) {
      const From* const source = from.data<From>();
      To* const target = to.data<To>();
      for (int64_t i = 0; i < to.numel(); ++i) target[i] = static_cast<To>(source[i]);
    });
  });
}

void swap_values(Cpu, const Tensor& a, const Tensor& b) {
  auto* const bytes = static_cast<std::byte*>(a.raw());
  std::swap_ranges(bytes, bytes + a.bytes(), static_cast<std::byte*>(b.raw()));
}

void add(Cpu, const Tensor& accumulator, const Tensor& x) {
  dispatch_floating("add", x.dtype(), [&]<class T>(T) {
    T* __restrict to = accumulator.data<T>();
    const T* __restrict from = x.data<T>();
    parallel_for(x.numel(), kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] += from[i];
    });
  });
}

int64_t first_not_finite(Cpu, const Tensor& x) {
  return dispatch_floating("first_not_finite", x.dtype(), [&]<class T>(T) {
    const T* const values = x.data<T>();
    for (int64_t i = 0; i < x.numel(); ++i)
      if (!std::isfinite(values[i])) return i;
    return int64_t{-1};
  });
}

void copy_from_host(Cpu, const std::byte* from, const Tensor& x) {
  copy_bytes(from, x.raw(), x.bytes());
}

void copy_to_host(Cpu, const Tensor& x, std::byte* to) {
  copy_bytes(x.raw(), to, x.bytes());
}

}  // namespace attune
