#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attune/ops/activation_cpu.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <numbers>

#include "attune/base/parallel.h"
#include "attune/ops/activation_kernel.h"
#include "attune/ops/math_inl.h"
#include "attune/ops/simd_inl.h"

HWY_BEFORE_NAMESPACE();
namespace attune {
namespace HWY_NAMESPACE {
namespace {

// Phi(x), the distribution function of the normal distribution.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V NormalDistribution(D d, V x) {
  using T = hn::TFromD<D>;
  const V half = hn::Set(d, T(0.5));
  return hn::MulAdd(half, Erf(d, hn::Mul(x, hn::Set(d, T(1 / std::numbers::sqrt2)))), half);
}

template <class T>
void Forward(ActivationKind kind, const T* x, T* y, size_t n) {
  const hn::ScalableTag<T> d;
  if (kind == ActivationKind::relu) {
    ForEachVector(d, n, [&](size_t i, auto part) HWY_ATTR {
      const auto v = part.Load(d, x + i);
      part.Store(d, hn::IfThenZeroElse(hn::Lt(v, hn::Zero(d)), v), y + i);  // NaN stays
    });
  } else {
    ForEachVector(d, n, [&](size_t i, auto part) HWY_ATTR {
      const auto v = part.Load(d, x + i);
      part.Store(d, hn::Mul(v, NormalDistribution(d, v)), y + i);
    });
  }
}

template <class T>
void Backward(ActivationKind kind, const T* saved, const T* dy, T* dx, size_t n) {
  const hn::ScalableTag<T> d;
  if (kind == ActivationKind::relu) {
    ForEachVector(d, n, [&](size_t i, auto part) HWY_ATTR {
      const auto positive = hn::Gt(part.Load(d, saved + i), hn::Zero(d));
      part.Store(d, hn::IfThenElseZero(positive, part.Load(d, dy + i)), dx + i);
    });
  } else {
    // Phi(x) + x phi(x), with the density phi(x) = exp(-x^2 / 2) / sqrt(2 pi)
    const auto norm = hn::Set(d, T(std::numbers::inv_sqrtpi / std::numbers::sqrt2));
    ForEachVector(d, n, [&](size_t i, auto part) HWY_ATTR {
      const auto v = part.Load(d, saved + i);
      const auto density = hn::Mul(norm, ExpOf(d, hn::Mul(hn::Mul(v, v), hn::Set(d, T(-0.5)))));
      const auto slope = hn::MulAdd(v, density, NormalDistribution(d, v));
      part.Store(d, hn::Mul(part.Load(d, dy + i), slope), dx + i);
    });
  }
}

void Forward32(ActivationKind kind, const float* x, float* y, size_t n) {
  Forward(kind, x, y, n);
}
void Forward64(ActivationKind kind, const double* x, double* y, size_t n) {
  Forward(kind, x, y, n);
}
void Backward32(ActivationKind kind, const float* saved, const float* dy, float* dx, size_t n) {
  Backward(kind, saved, dy, dx, n);
}
void Backward64(ActivationKind kind, const double* saved, const double* dy, double* dx, size_t n) {
  Backward(kind, saved, dy, dx, n);
}

}  // namespace
// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attune
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attune {
namespace {

HWY_EXPORT(Forward32);
HWY_EXPORT(Forward64);
HWY_EXPORT(Backward32);
HWY_EXPORT(Backward64);

constexpr int64_t kGrain = 1 << 15;

}  // namespace

void activation_forward(Cpu, ActivationKind kind, const float* x, float* y, int64_t n) {
  parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(Forward32)(kind, x + begin, y + begin, static_cast<size_t>(end - begin));
  });
}
void activation_forward(Cpu, ActivationKind kind, const double* x, double* y, int64_t n) {
  parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(Forward64)(kind, x + begin, y + begin, static_cast<size_t>(end - begin));
  });
}
void activation_backward(Cpu, ActivationKind kind, const float* saved, const float* dy, float* dx, int64_t n) {
  parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(Backward32)(kind, saved + begin, dy + begin, dx + begin, static_cast<size_t>(end - begin));
  });
}
void activation_backward(Cpu, ActivationKind kind, const double* saved, const double* dy, double* dx, int64_t n) {
  parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(Backward64)(kind, saved + begin, dy + begin, dx + begin, static_cast<size_t>(end - begin));
  });
}

}  // namespace attune
#endif
