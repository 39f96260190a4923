#pragma once
// Activations of one number and their slopes. plain/activation_functions.h defines them.

#include <cmath>

#include "attune/kernels/activation_kind.h"
#include "attune/kernels/cuda/runtime/platform.h"

namespace attune::cuda {

template <class T>
ATTUNE_DEVICE T sigmoid(T x) {
  return 1 / (1 + std::exp(-x));
}

template <class T>
ATTUNE_DEVICE T normal_distribution(T x) {
  return (1 + std::erf(x * static_cast<T>(0.70710678118654752440))) / 2;
}

/// tanh; for float with an absolute error of about 1e-7. CUDA's own tanh has so many instructions that a pass over
/// memory waits for them.
template <class T>
ATTUNE_DEVICE T quick_tanh(T x) {
#ifdef __CUDACC__
  if constexpr (sizeof(T) == sizeof(float)) return 1 - __fdividef(2.0f, 1 + __expf(2 * x));
#endif
  return std::tanh(x);
}

template <class T>
ATTUNE_DEVICE T gelu_tanh_of(T x) {
  return quick_tanh(static_cast<T>(0.79788456080286535588) * (x + static_cast<T>(0.044715) * x * x * x));
}

template <class T>
ATTUNE_DEVICE T activation_of(Activation activation, T x) {
  switch (activation) {
    case Activation::none:
      break;
    case Activation::relu:
      return x < 0 ? T{0} : x;
    case Activation::gelu:
      return x * normal_distribution(x);
    case Activation::gelu_tanh:
      return x / 2 * (1 + gelu_tanh_of(x));
    case Activation::gelu_sigmoid:
      return x * sigmoid(static_cast<T>(1.702) * x);
    case Activation::silu:
      return x * sigmoid(x);
    case Activation::tanh:
      return std::tanh(x);
  }
  return x;
}

template <class T>
ATTUNE_DEVICE T slope_of(Activation activation, T x) {
  switch (activation) {
    case Activation::none:
      break;
    case Activation::relu:
      return x > 0 ? T{1} : T{0};
    case Activation::gelu:
      return normal_distribution(x) + x * std::exp(-x * x / 2) * static_cast<T>(0.39894228040143267794);
    case Activation::gelu_tanh: {
      const T t = gelu_tanh_of(x);
      const T slope = static_cast<T>(0.79788456080286535588) * (1 + static_cast<T>(3 * 0.044715) * x * x);
      return (1 + t) / 2 + x / 2 * (1 - t * t) * slope;
    }
    case Activation::gelu_sigmoid: {
      const T s = sigmoid(static_cast<T>(1.702) * x);
      return s + static_cast<T>(1.702) * x * s * (1 - s);
    }
    case Activation::silu: {
      const T s = sigmoid(x);
      return s + x * s * (1 - s);
    }
    case Activation::tanh: {
      const T t = std::tanh(x);
      return 1 - t * t;
    }
  }
  return 1;
}

}  // namespace attune::cuda
