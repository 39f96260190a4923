// Transposition in registers. Included once for each target (Highway).

#if defined(ATTUNE_KERNELS_TRANSPOSE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTUNE_KERNELS_TRANSPOSE_INL_H_
#undef ATTUNE_KERNELS_TRANSPOSE_INL_H_
#else
#define ATTUNE_KERNELS_TRANSPOSE_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace attune {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR
struct FourRows {
  const float *a, *b, *c, *d;
};

/// to[j * stride + i] = row i [j], for four numbers of each of four rows.
HWY_INLINE void Transpose4(const FourRows& rows, float* to, int64_t stride) {
  const hn::FixedTag<float, 4> d;
  const hn::Repartition<uint64_t, decltype(d)> pairs;
  const auto r0 = hn::LoadU(d, rows.a), r1 = hn::LoadU(d, rows.b), r2 = hn::LoadU(d, rows.c), r3 = hn::LoadU(d, rows.d);
  const auto low_01 = hn::BitCast(pairs, hn::InterleaveLower(d, r0, r1)),
             high_01 = hn::BitCast(pairs, hn::InterleaveUpper(d, r0, r1));
  const auto low_23 = hn::BitCast(pairs, hn::InterleaveLower(d, r2, r3)),
             high_23 = hn::BitCast(pairs, hn::InterleaveUpper(d, r2, r3));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, low_01, low_23)), d, to);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, low_01, low_23)), d, to + stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, high_01, high_23)), d, to + 2 * stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, high_01, high_23)), d, to + 3 * stride);
}
#endif

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attune
HWY_AFTER_NAMESPACE();

#endif
