#include "attune/tensor/memory.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "attune/kernels/for_dtype.h"

namespace attune {

void fill(Plain, const Tensor& x, double value) {
  for_any_dtype(x.dtype(), [&]<class T>(T) {
    for (T& element : x.values<T>()) element = static_cast<T>(value);
  });
}

void zero(Plain, const Tensor& x) {
  std::memset(x.raw(), 0, x.bytes());
}

void copy(Plain, const Tensor& from, const Tensor& to) {
  std::memcpy(to.raw(), from.raw(), to.bytes());
}

void convert(Plain, const Tensor& from, const Tensor& to) {
  for_any_dtype(from.dtype(), [&]<class From>(From) {
    for_any_dtype(to.dtype(), [&]<class To>(To) {
      for (int64_t i = 0; i < to.numel(); ++i) to.data<To>()[i] = static_cast<To>(from.data<From>()[i]);
    });
  });
}

void swap_values(Plain, const Tensor& a, const Tensor& b) {
  auto* const bytes = static_cast<std::byte*>(a.raw());
  std::swap_ranges(bytes, bytes + a.bytes(), static_cast<std::byte*>(b.raw()));
}

void add(Plain, const Tensor& accumulator, const Tensor& x) {
  dispatch_floating("add", x.dtype(), [&]<class T>(T) {
    for (int64_t i = 0; i < x.numel(); ++i) accumulator.data<T>()[i] += x.data<T>()[i];
  });
}

int64_t first_not_finite(Plain, const Tensor& x) {
  return dispatch_floating("first_not_finite", x.dtype(), [&]<class T>(T) {
    for (int64_t i = 0; i < x.numel(); ++i)
      if (!std::isfinite(x.data<T>()[i])) return i;
    return int64_t{-1};
  });
}

void copy_from_host(Plain, const std::byte* from, const Tensor& x) {
  std::memcpy(x.raw(), from, x.bytes());
}

void copy_to_host(Plain, const Tensor& x, std::byte* to) {
  std::memcpy(to, x.raw(), x.bytes());
}

}  // namespace attune
