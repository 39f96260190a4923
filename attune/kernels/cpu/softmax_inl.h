// The largest logarithm of a row and the sum of exponentials. Included once for each target (Highway).

#if defined(ATTUNE_KERNELS_SOFTMAX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTUNE_KERNELS_SOFTMAX_INL_H_
#undef ATTUNE_KERNELS_SOFTMAX_INL_H_
#else
#define ATTUNE_KERNELS_SOFTMAX_INL_H_
#endif

#include <hwy/highway.h>

#include "attune/kernels/cpu/math_inl.h"
#include "attune/kernels/cpu/simd_inl.h"

HWY_BEFORE_NAMESPACE();
namespace attune {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// What is subtracted from a row before exp: its largest element, or 0 where all are -inf, so that exp gives 0, not
/// NaN.
template <class T>
HWY_INLINE T ShiftOf(T largest) {
  return largest == -std::numeric_limits<T>::infinity() ? T{0} : largest;
}
template <class T>
HWY_INLINE T RowShift(const T* x, size_t columns) {
  return ShiftOf(Largest(hn::ScalableTag<T>(), x, columns));
}

/// sum(exp(x - shift)); each term is also written to `terms` unless that is null. terms may be x.
template <class T>
HWY_INLINE T SumOfExponentials(const T* x, T shift, size_t columns, T* terms) {
  const hn::ScalableTag<T> d;
  const auto s = hn::Set(d, shift);
  T total[1];
  Sums(d, columns, total, [&](size_t i, auto part, auto& sums) HWY_ATTR {
    const auto e = ExpOf(d, hn::Sub(part.Load(d, x + i), s));
    if (terms != nullptr) part.Store(d, e, terms + i);
    sums[0] = hn::Add(sums[0], part.OrElse(d, e, T{0}));
  });
  return total[0];
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attune
HWY_AFTER_NAMESPACE();

#endif
