// Activations and their gradients inside kernels. Included once for each target (Highway).

#if defined(ATTUNE_KERNELS_ACTIVATION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTUNE_KERNELS_ACTIVATION_INL_H_
#undef ATTUNE_KERNELS_ACTIVATION_INL_H_
#else
#define ATTUNE_KERNELS_ACTIVATION_INL_H_
#endif

#include <hwy/highway.h>

#include <numbers>

#include "attune/kernels/activation_kind.h"
#include "attune/kernels/cpu/math_inl.h"

HWY_BEFORE_NAMESPACE();
namespace attune {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Each function has Value(d, x) and Gradient(d, x, dy), dy times its slope at x. NaN stays NaN. At -inf, x times a
// factor that is 0 is NaN too, as in oneDNN's epilogues.

struct IdentityFunction {
  template <class D, class V = hn::Vec<D>>
  HWY_INLINE V Value(D, V x) const {
    return x;
  }
  template <class D, class V = hn::Vec<D>>
  HWY_INLINE V Gradient(D, V, V dy) const {
    return dy;
  }
};

struct ReluFunction {
  template <class D, class V = hn::Vec<D>>
  HWY_INLINE V Value(D d, V x) const {
    return hn::IfThenZeroElse(hn::Lt(x, hn::Zero(d)), x);
  }
  template <class D, class V = hn::Vec<D>>
  HWY_INLINE V Gradient(D d, V x, V dy) const {
    return hn::IfThenElseZero(hn::Gt(x, hn::Zero(d)), dy);
  }
};

struct GeluFunction {
  // Phi(x), the distribution function of the normal distribution.
  template <class D, class V = hn::Vec<D>>
  HWY_INLINE V NormalDistribution(D d, V x) const {
    using T = hn::TFromD<D>;
    const V half = hn::Set(d, T(0.5));
    return hn::MulAdd(half, Erf(d, hn::Mul(x, hn::Set(d, T(1 / std::numbers::sqrt2)))), half);
  }
  template <class D, class V = hn::Vec<D>>
  HWY_INLINE V Value(D d, V x) const {
    return hn::Mul(x, NormalDistribution(d, x));
  }
  // Phi(x) + x phi(x), with the density phi(x) = exp(-x^2 / 2) / sqrt(2 pi)
  template <class D, class V = hn::Vec<D>>
  HWY_INLINE V Gradient(D d, V x, V dy) const {
    using T = hn::TFromD<D>;
    const V norm = hn::Set(d, T(std::numbers::inv_sqrtpi / std::numbers::sqrt2));
    const V density = hn::Mul(norm, ExpOf(d, hn::Mul(hn::Mul(x, x), hn::Set(d, T(-0.5)))));
    return hn::Mul(dy, hn::MulAdd(x, density, NormalDistribution(d, x)));
  }
};

template <class V>
struct SigmoidOf {
  V value;
  V slope;
};

// sigmoid(s) = 1 / (1 + e^-s) and sigmoid (1 - sigmoid), through e^-|s|, which never overflows and keeps the small one
// of sigmoid and 1 - sigmoid precise.
template <class D, class V = hn::Vec<D>>
HWY_INLINE SigmoidOf<V> Sigmoid(D d, V s) {
  const V one = hn::Set(d, hn::TFromD<D>(1));
  const V e = ExpOf(d, hn::Neg(hn::Abs(s)));
  const V large = hn::Div(one, hn::Add(one, e));
  const V small = hn::Mul(e, large);
  return {hn::IfThenElse(hn::Lt(s, hn::Zero(d)), small, large), hn::Mul(large, small)};
}

struct SiluFunction {
  template <class D, class V = hn::Vec<D>>
  HWY_INLINE V Value(D d, V x) const {
    return hn::Mul(x, Sigmoid(d, x).value);
  }
  template <class D, class V = hn::Vec<D>>
  HWY_INLINE V Gradient(D d, V x, V dy) const {
    const SigmoidOf<V> sigmoid = Sigmoid(d, x);
    return hn::Mul(dy, hn::MulAdd(x, sigmoid.slope, sigmoid.value));
  }
};

// x sigmoid(1.702 x)
struct GeluSigmoidFunction {
  template <class D, class V = hn::Vec<D>>
  HWY_INLINE V Scaled(D d, V x) const {
    return hn::Mul(x, hn::Set(d, hn::TFromD<D>(1.702)));
  }
  template <class D, class V = hn::Vec<D>>
  HWY_INLINE V Value(D d, V x) const {
    return hn::Mul(x, Sigmoid(d, Scaled(d, x)).value);
  }
  template <class D, class V = hn::Vec<D>>
  HWY_INLINE V Gradient(D d, V x, V dy) const {
    const SigmoidOf<V> sigmoid = Sigmoid(d, Scaled(d, x));
    return hn::Mul(dy, hn::MulAdd(x, Scaled(d, sigmoid.slope), sigmoid.value));
  }
};

// (1 + tanh(u)) / 2 = sigmoid(2 u)
struct GeluTanhFunction {
  // x^2, bounded: the slope of 2 u has to stay finite where the slope of the sigmoid, its factor, is 0.
  template <class D, class V = hn::Vec<D>>
  HWY_INLINE V Square(D d, V x) const {
    return hn::Min(hn::Mul(x, x), hn::Set(d, hn::TFromD<D>(1e4)));
  }
  // scale (1 + cubic x^2), with scale = 2 sqrt(2 / pi): times x it is 2 u, and with three times the cubic, its slope.
  template <class D, class V = hn::Vec<D>>
  HWY_INLINE V Polynomial(D d, V square, double cubic) const {
    using T = hn::TFromD<D>;
    constexpr double kScale = 2 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
    return hn::MulAdd(square, hn::Set(d, T(kScale * cubic)), hn::Set(d, T(kScale)));
  }
  template <class D, class V = hn::Vec<D>>
  HWY_INLINE V Value(D d, V x) const {
    return hn::Mul(x, Sigmoid(d, hn::Mul(x, Polynomial(d, Square(d, x), 0.044715))).value);
  }
  template <class D, class V = hn::Vec<D>>
  HWY_INLINE V Gradient(D d, V x, V dy) const {
    const V square = Square(d, x);
    const SigmoidOf<V> sigmoid = Sigmoid(d, hn::Mul(x, Polynomial(d, square, 0.044715)));
    const V along = hn::Mul(sigmoid.slope, Polynomial(d, square, 3 * 0.044715));
    return hn::Mul(dy, hn::MulAdd(x, along, sigmoid.value));
  }
};

// (1 - e^-2|x|) / (1 + e^-2|x|) with the sign of x, which never overflows; the slope is 1 - tanh(x)^2.
struct TanhFunction {
  template <class D, class V = hn::Vec<D>>
  HWY_INLINE V Value(D d, V x) const {
    const V one = hn::Set(d, hn::TFromD<D>(1));
    const V e = ExpOf(d, hn::Mul(hn::Abs(x), hn::Set(d, hn::TFromD<D>(-2))));
    return hn::CopySignToAbs(hn::Div(hn::Sub(one, e), hn::Add(one, e)), x);
  }
  template <class D, class V = hn::Vec<D>>
  HWY_INLINE V Gradient(D d, V x, V dy) const {
    const V value = Value(d, x);
    return hn::Mul(dy, hn::NegMulAdd(value, value, hn::Set(d, hn::TFromD<D>(1))));
  }
};

/// Calls f with the function that `kind` names, so that loops over elements are compiled for each of them.
template <class F>
HWY_INLINE void WithActivation(Activation kind, F&& f) {
  switch (kind) {
    case Activation::none:
      return f(IdentityFunction{});
    case Activation::relu:
      return f(ReluFunction{});
    case Activation::gelu:
      return f(GeluFunction{});
    case Activation::gelu_tanh:
      return f(GeluTanhFunction{});
    case Activation::gelu_sigmoid:
      return f(GeluSigmoidFunction{});
    case Activation::silu:
      return f(SiluFunction{});
    case Activation::tanh:
      return f(TanhFunction{});
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attune
HWY_AFTER_NAMESPACE();

#endif
