// Loops over rows of any length with Highway's vectors. Included once for each target.

#if defined(ATTUNE_KERNELS_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTUNE_KERNELS_SIMD_INL_H_
#undef ATTUNE_KERNELS_SIMD_INL_H_
#else
#define ATTUNE_KERNELS_SIMD_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>

#include <cstddef>
#include <cstdint>
#include <limits>

HWY_BEFORE_NAMESPACE();
namespace attune {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// One step of a loop, on a full vector of elements.
struct WholeVector {
  template <class D>
  HWY_INLINE hn::Vec<D> Load(D d, const hn::TFromD<D>* p) const {
    return hn::LoadU(d, p);
  }
  template <class D>
  HWY_INLINE void Store(D d, hn::Vec<D> v, hn::TFromD<D>* p) const {
    hn::StoreU(v, d, p);
  }
  template <class D>
  HWY_INLINE hn::Vec<D> OrElse(D, hn::Vec<D> v, hn::TFromD<D>) const {
    return v;
  }
};

/// One step of a loop, on the last `count` elements of a row. Neither loads nor stores touch what lies behind them;
/// loads give zero there.
struct PartOfVector {
  size_t count;
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  template <class D>
  HWY_INLINE hn::Vec<D> Load(D d, const hn::TFromD<D>* p) const {
    return hn::MaskedLoad(hn::FirstN(d, count), d, p);
  }
  template <class D>
  HWY_INLINE void Store(D d, hn::Vec<D> v, hn::TFromD<D>* p) const {
    hn::BlendedStore(v, hn::FirstN(d, count), d, p);
  }
#else  // elsewhere Highway reads and writes whole vectors for these, and so the beginning of the next row
  template <class D, class T = hn::TFromD<D>>
  HWY_INLINE hn::Vec<D> Load(D d, const T* p) const {
    HWY_ALIGN T part[HWY_LANES(T)] = {};
    std::copy_n(p, count, part);
    return hn::Load(d, part);
  }
  template <class D, class T = hn::TFromD<D>>
  HWY_INLINE void Store(D d, hn::Vec<D> v, T* p) const {
    HWY_ALIGN T part[HWY_LANES(T)];
    hn::Store(v, d, part);
    std::copy_n(part, count, p);
  }
#endif
  template <class D>
  HWY_INLINE hn::Vec<D> OrElse(D d, hn::Vec<D> v, hn::TFromD<D> otherwise) const {
    return hn::IfThenElse(hn::FirstN(d, count), v, hn::Set(d, otherwise));
  }
};

/// Calls f(i, part) for each vector of n elements; `part` is a WholeVector or, for the rest, a PartOfVector.
template <class D, class F>
HWY_INLINE void ForEachVector(D d, size_t n, F&& f) {
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) f(i, WholeVector{});
  if (i < n) f(i, PartOfVector{n - i});
}

/// Calls f(i, part, accumulators) for each vector. There are four sets of accumulators, so that steps need not wait for
/// one another; combine(a, b) joins them in the end.
template <int kCount, class D, class F, class Combine, class V = hn::Vec<D>>
HWY_INLINE void Reduce(D d, size_t n, V (&result)[kCount], F&& f, Combine&& combine) {
  const size_t lanes = hn::Lanes(d);
  V second[kCount], third[kCount], fourth[kCount];
  for (int k = 0; k < kCount; ++k) second[k] = third[k] = fourth[k] = result[k];
  size_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    f(i, WholeVector{}, result);
    f(i + lanes, WholeVector{}, second);
    f(i + 2 * lanes, WholeVector{}, third);
    f(i + 3 * lanes, WholeVector{}, fourth);
  }
  for (; i + lanes <= n; i += lanes) f(i, WholeVector{}, result);
  if (i < n) f(i, PartOfVector{n - i}, second);
  for (int k = 0; k < kCount; ++k) result[k] = combine(combine(result[k], second[k]), combine(third[k], fourth[k]));
}

/// Sums over a row: f(i, part, sums) adds to each of kCount sums, which are written to `totals`.
template <int kCount, class D, class F, class T = hn::TFromD<D>>
HWY_INLINE void Sums(D d, size_t n, T (&totals)[kCount], F&& f) {
  hn::Vec<D> sums[kCount];
  for (int k = 0; k < kCount; ++k) sums[k] = hn::Zero(d);
  Reduce(d, n, sums, f, [](auto a, auto b) HWY_ATTR { return hn::Add(a, b); });
  for (int k = 0; k < kCount; ++k) totals[k] = hn::GetLane(hn::SumOfLanes(d, sums[k]));
}

/// The largest element; minus infinity if n is 0.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE T Largest(D d, const T* x, size_t n) {
  constexpr T kLowest = -std::numeric_limits<T>::infinity();
  hn::Vec<D> largest[1] = {hn::Set(d, kLowest)};
  Reduce(
      d, n, largest,
      [&](size_t i, auto part, auto& most)
          HWY_ATTR { most[0] = hn::Max(most[0], part.OrElse(d, part.Load(d, x + i), kLowest)); },
      [](auto a, auto b) HWY_ATTR { return hn::Max(a, b); });
  return hn::GetLane(hn::MaxOfLanes(d, largest[0]));
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attune
HWY_AFTER_NAMESPACE();

#endif
