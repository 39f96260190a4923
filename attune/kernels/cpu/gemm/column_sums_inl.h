// Sums over the rows of a block. Included once for each target (Highway).

#if defined(ATTUNE_KERNELS_COLUMN_SUMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTUNE_KERNELS_COLUMN_SUMS_INL_H_
#undef ATTUNE_KERNELS_COLUMN_SUMS_INL_H_
#else
#define ATTUNE_KERNELS_COLUMN_SUMS_INL_H_
#endif

#include <hwy/highway.h>

#include "attune/kernels/cpu/simd_inl.h"

HWY_BEFORE_NAMESPACE();
namespace attune {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// sums[j] = the sum of column j, or += when `accumulate`. Four rows at a time, since each step reads and writes
/// `sums`.
template <class T>
HWY_INLINE void AddRows(const T* x, int64_t rows, size_t columns, T* HWY_RESTRICT sums, bool accumulate) {
  const hn::ScalableTag<T> d;
  if (!accumulate) {
    ForEachVector(d, columns, [&](size_t i, auto part) HWY_ATTR { part.Store(d, hn::Zero(d), sums + i); });
  }
  int64_t row = 0;
  for (; row + 4 <= rows; row += 4, x += 4 * columns) {
    ForEachVector(d, columns, [&](size_t i, auto part) HWY_ATTR {
      const auto low = hn::Add(part.Load(d, x + i), part.Load(d, x + columns + i));
      const auto high = hn::Add(part.Load(d, x + 2 * columns + i), part.Load(d, x + 3 * columns + i));
      part.Store(d, hn::Add(part.Load(d, sums + i), hn::Add(low, high)), sums + i);
    });
  }
  for (; row < rows; ++row, x += columns) {
    ForEachVector(d, columns, [&](size_t i, auto part) HWY_ATTR {
      part.Store(d, hn::Add(part.Load(d, sums + i), part.Load(d, x + i)), sums + i);
    });
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attune
HWY_AFTER_NAMESPACE();

#endif
