#pragma once
// Arithmetic of kernels.

#include <cmath>

#include "attune/kernels/cuda/runtime/platform.h"
#include "attune/tensor/dtype.h"

namespace attune::cuda {

/// The type that sums and formulas of T are computed in: float for float and bfloat16, double for double.
template <class T>
struct Wide {
  using type = float;
};
template <>
struct Wide<double> {
  using type = double;
};
template <class T>
using wide_t = typename Wide<T>::type;

template <class T>
ATTUNE_DEVICE wide_t<T> widened(T value) {
  return static_cast<wide_t<T>>(value);
}

/// The smallest positive normal float.
constexpr float kLeastNormal = 1.17549435e-38f;

template <class T>
ATTUNE_HOST_DEVICE T infinity() {
  return static_cast<T>(HUGE_VALF);
}

}  // namespace attune::cuda
