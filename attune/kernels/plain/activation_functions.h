#pragma once
// Activations of one number and their slopes: the definitions.

#include <cmath>
#include <numbers>

#include "attune/kernels/activation_kind.h"

namespace attune::plain {

inline double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

// The argument of the tanh in gelu_tanh, and its slope.
inline double gelu_tanh_argument(double x) {
  return std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
}
inline double gelu_tanh_slope(double x) {
  return std::sqrt(2 / std::numbers::pi) * (1 + 3 * 0.044715 * x * x);
}

// gelu_sigmoid(x) = x sigmoid(kGeluSigmoidSlope x).
constexpr double kGeluSigmoidSlope = 1.702;

/// Phi(x), the distribution function of the normal distribution.
inline double normal_distribution(double x) {
  return (1 + std::erf(x / std::numbers::sqrt2)) / 2;
}

inline double activation_of(Activation activation, double x) {
  switch (activation) {
    case Activation::none:
      break;
    case Activation::relu:
      return x < 0 ? 0 : x;
    case Activation::gelu:
      return x * normal_distribution(x);
    case Activation::gelu_tanh:
      return x / 2 * (1 + std::tanh(gelu_tanh_argument(x)));
    case Activation::gelu_sigmoid:
      return x * sigmoid(kGeluSigmoidSlope * x);
    case Activation::silu:
      return x * sigmoid(x);
    case Activation::tanh:
      return std::tanh(x);
  }
  return x;
}

inline double slope_of(Activation activation, double x) {
  switch (activation) {
    case Activation::none:
      break;
    case Activation::relu:
      return x > 0 ? 1 : 0;
    case Activation::gelu:
      return normal_distribution(x) + x * std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
    case Activation::gelu_tanh: {
      const double t = std::tanh(gelu_tanh_argument(x));
      return (1 + t) / 2 + x / 2 * (1 - t * t) * gelu_tanh_slope(x);
    }
    case Activation::gelu_sigmoid: {
      const double s = sigmoid(kGeluSigmoidSlope * x);
      return s + kGeluSigmoidSlope * x * s * (1 - s);
    }
    case Activation::silu: {
      const double s = sigmoid(x);
      return s + x * s * (1 - s);
    }
    case Activation::tanh: {
      const double t = std::tanh(x);
      return 1 - t * t;
    }
  }
  return 1;
}

}  // namespace attune::plain
