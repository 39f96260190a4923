// Products of tiles that lie in cache, for the attention kernel. Included once for each target (Highway).

#if defined(ATTUNE_KERNELS_SMALL_MATMUL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTUNE_KERNELS_SMALL_MATMUL_INL_H_
#undef ATTUNE_KERNELS_SMALL_MATMUL_INL_H_
#else
#define ATTUNE_KERNELS_SMALL_MATMUL_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace attune {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// a [m, k] is read one element at a time, at data[i * row + p * column], so that it may be transposed.
template <class T>
struct TileA {
  const T* data;
  int64_t row;
  int64_t column;

  TileA from_row(int64_t i) const { return {data + i * row, row, column}; }
};

/// b [k, n]: row p begins at data + p * row.
template <class T>
struct TileB {
  const T* data;
  int64_t row;
  int64_t k;
};

/// c [m, n]: its rows lie one after another.
template <class T>
struct TileC {
  T* data;
  int64_t m;
  int64_t n;

  TileC from_row(int64_t i) const { return {data + i * n, m - i, n}; }
};

// kRows x (kVectors * lanes) of c, from its first row and column j; the accumulators stay in registers over the whole
// of k.
template <int kRows, int kVectors, class D, class T = hn::TFromD<D>>
HWY_INLINE void SmallMatmulBlock(D d, TileA<T> a, TileB<T> b, TileC<T> c, int64_t j, bool accumulate) {
  using V = hn::Vec<D>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const T* HWY_RESTRICT from = b.data + j;
  T* HWY_RESTRICT to = c.data + j;
  V sum[kRows][kVectors];
  for (int i = 0; i < kRows; ++i) {
    for (int v = 0; v < kVectors; ++v) sum[i][v] = accumulate ? hn::LoadU(d, to + i * c.n + v * lanes) : hn::Zero(d);
  }
  for (int64_t p = 0; p < b.k; ++p) {
    V row[kVectors];
    for (int v = 0; v < kVectors; ++v) row[v] = hn::LoadU(d, from + p * b.row + v * lanes);
    for (int i = 0; i < kRows; ++i) {
      const V value = hn::Set(d, a.data[i * a.row + p * a.column]);
      for (int v = 0; v < kVectors; ++v) sum[i][v] = hn::MulAdd(value, row[v], sum[i][v]);
    }
  }
  for (int i = 0; i < kRows; ++i) {
    for (int v = 0; v < kVectors; ++v) hn::StoreU(sum[i][v], d, to + i * c.n + v * lanes);
  }
}

// The first kRows rows of c.
template <int kRows, class D, class T = hn::TFromD<D>>
HWY_INLINE void SmallMatmulRows(D d, TileA<T> a, TileB<T> b, TileC<T> c, bool accumulate) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t j = 0;
  for (; j + 2 * lanes <= c.n; j += 2 * lanes) SmallMatmulBlock<kRows, 2>(d, a, b, c, j, accumulate);
  for (; j < c.n; j += lanes) SmallMatmulBlock<kRows, 1>(d, a, b, c, j, accumulate);
}

/// c [m, n] = or += a [m, k] b [k, n]. n is a multiple of the lanes; rows of b and c are padded to that.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void SmallMatmul(D d, TileA<T> a, TileB<T> b, TileC<T> c, bool accumulate) {
  int64_t i = 0;
  for (; i + 6 <= c.m; i += 6) SmallMatmulRows<6>(d, a.from_row(i), b, c.from_row(i), accumulate);
  for (; i + 4 <= c.m; i += 4) SmallMatmulRows<4>(d, a.from_row(i), b, c.from_row(i), accumulate);
  for (; i + 2 <= c.m; i += 2) SmallMatmulRows<2>(d, a.from_row(i), b, c.from_row(i), accumulate);
  for (; i < c.m; ++i) SmallMatmulRows<1>(d, a.from_row(i), b, c.from_row(i), accumulate);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attune
HWY_AFTER_NAMESPACE();

#endif
