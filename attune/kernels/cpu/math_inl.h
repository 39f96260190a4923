// Elementary functions for the kernels. Included once for each target (Highway).

#if defined(ATTUNE_KERNELS_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTUNE_KERNELS_MATH_INL_H_
#undef ATTUNE_KERNELS_MATH_INL_H_
#else
#define ATTUNE_KERNELS_MATH_INL_H_
#endif

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <cmath>

HWY_BEFORE_NAMESPACE();
namespace attune {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// e^x for x <= 88. Unlike Highway's own, NaN stays NaN, so that a broken row is seen.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V ExpOf(D d, V x) {
  // The bound keeps the conversion to integers inside Exp defined for -inf; below it the result is 0 all the same.
  const V bounded = hn::Max(x, hn::Set(d, static_cast<hn::TFromD<D>>(sizeof(hn::TFromD<D>) == 4 ? -200.0 : -1200.0)));
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Exp(d, bounded));
}

// sum of coefficients[i] * x^i
template <size_t kCount, class D, class V = hn::Vec<D>>
HWY_INLINE V Polynomial(D d, V x, const float (&coefficients)[kCount]) {
  V sum = hn::Set(d, coefficients[kCount - 1]);
  for (size_t i = kCount - 1; i-- > 0;) sum = hn::MulAdd(sum, x, hn::Set(d, coefficients[i]));
  return sum;
}

/// The error function. In float32 with an absolute error below 2e-7, from minimax fits: x P(x^2) below 1, and
/// 1 - exp(-P(|x|)) above. In float64, which gradient checks use, the standard library's.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Erf(D d, V x) {
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    constexpr float kInner[] = {1.1283788681f,    -0.376119405031f, 0.112780645490f,
                                -0.026663811877f, 0.004870704841f,  -0.000546293333f};
    constexpr float kOuter[] = {0.0026717036963f, 1.1174384355545f,  0.6544889807701f,
                                0.0886341705918f, -0.0147781185806f, 0.0011504219146f};
    const V magnitude = hn::Abs(x);
    const V inner = hn::Mul(x, Polynomial(d, hn::Mul(x, x), kInner));
    const V bounded = hn::Min(magnitude, hn::Set(d, 4.0f));  // erf(4) rounds to 1
    const V outer = hn::Sub(hn::Set(d, 1.0f), hn::Exp(d, hn::Neg(Polynomial(d, bounded, kOuter))));
    return hn::IfThenElse(hn::Ge(magnitude, hn::Set(d, 1.0f)), hn::CopySign(outer, x), inner);
  } else {
    HWY_ALIGN double lanes[HWY_LANES(double)];
    hn::Store(x, d, lanes);
    for (size_t i = 0; i < hn::Lanes(d); ++i) lanes[i] = std::erf(lanes[i]);
    return hn::Load(d, lanes);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attune
HWY_AFTER_NAMESPACE();

#endif
