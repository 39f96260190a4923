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

// sum of coefficients[i] * x^i
template <size_t kCount, class D, class V = hn::Vec<D>>
HWY_INLINE V Polynomial(D d, V x, const float (&coefficients)[kCount]) {
  V sum = hn::Set(d, coefficients[kCount - 1]);
  for (size_t i = kCount - 1; i-- > 0;) sum = hn::MulAdd(sum, x, hn::Set(d, coefficients[i]));
  return sum;
}

/// e^x for x <= 88. NaN stays NaN, so that a broken row is seen.
///   float32  within 2 ulp; 0 for x < -87. Half of the instructions of Highway's Exp. Source: Cephes (Moshier), expf.
///   float64  Highway's Exp: within 1 ulp
template <class D, class V = hn::Vec<D>>
HWY_INLINE V ExpOf(D d, V x) {
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    // e^x = 2^n e^r with n = round(x / log(2)), so |r| <= log(2) / 2. Between 2^23 and 2^24 float32 has only integers:
    // adding 1.5 * 2^23 rounds to an integer, and leaves it in the low bits. With the exponent bias added too, these
    // bits are the exponent field of 2^n.
    constexpr float kRoundToInteger = 12582912.0f;  // 1.5 * 2^23
    constexpr float kExponentBias = 127.0f;
    const hn::RebindToUnsigned<D> bits;
    const V rounder = hn::Set(d, kRoundToInteger + kExponentBias);
    const V shifted = hn::MulAdd(x, hn::Set(d, 1.44269504f), rounder);
    const V n = hn::Sub(shifted, rounder);
    V r = hn::NegMulAdd(n, hn::Set(d, 0.693359375f), x);
    r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4f), r);
    const V squared = hn::Mul(r, r);
    const V first = hn::MulAdd(r, hn::Set(d, 1.6666665459e-1f), hn::Set(d, 5.0000001201e-1f));
    const V second = hn::MulAdd(r, hn::Set(d, 8.3334519073e-3f), hn::Set(d, 4.1665795894e-2f));
    const V third = hn::MulAdd(r, hn::Set(d, 1.9875691500e-4f), hn::Set(d, 1.3981999507e-3f));
    const V rest = hn::MulAdd(hn::MulAdd(third, squared, second), squared, first);
    const V of_r = hn::MulAdd(rest, squared, hn::Add(r, hn::Set(d, 1.0f)));
    const V power = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(bits, shifted)));
    return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -87.0f)), hn::Mul(of_r, power));
  } else {
    // The bound keeps the conversion to integers inside Exp defined for -inf; below it the result is 0 all the same.
    return hn::IfThenElse(hn::IsNaN(x), x, hn::Exp(d, hn::Max(x, hn::Set(d, -1200.0))));
  }
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
