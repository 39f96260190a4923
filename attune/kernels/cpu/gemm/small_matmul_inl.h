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

/// a is read one element at a time, at a[i * row + p * column], so that it may be transposed.
template <class T>
struct TileA {
  const T* data;
  int64_t row;
  int64_t column;
};

// kRows x (kVectors * lanes) of c; the accumulators stay in registers over the whole of k.
template <int kRows, int kVectors, class D, class T = hn::TFromD<D>>
HWY_INLINE void SmallMatmulBlock(D d, TileA<T> a, const T* HWY_RESTRICT b, int64_t b_row, T* HWY_RESTRICT c,
                                 int64_t c_row, int64_t k, bool accumulate) {
  using V = hn::Vec<D>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V sum[kRows][kVectors];
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kVectors; ++j) sum[i][j] = accumulate ? hn::LoadU(d, c + i * c_row + j * lanes) : hn::Zero(d);
  }
  for (int64_t p = 0; p < k; ++p) {
    V row[kVectors];
    for (int j = 0; j < kVectors; ++j) row[j] = hn::LoadU(d, b + p * b_row + j * lanes);
    for (int i = 0; i < kRows; ++i) {
      const V value = hn::Set(d, a.data[i * a.row + p * a.column]);
      for (int j = 0; j < kVectors; ++j) sum[i][j] = hn::MulAdd(value, row[j], sum[i][j]);
    }
  }
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kVectors; ++j) hn::StoreU(sum[i][j], d, c + i * c_row + j * lanes);
  }
}

template <int kRows, class D, class T = hn::TFromD<D>>
HWY_INLINE void SmallMatmulRows(D d, TileA<T> a, const T* HWY_RESTRICT b, int64_t b_row, T* HWY_RESTRICT c,
                                int64_t c_row, int64_t n, int64_t k, bool accumulate) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t j = 0;
  for (; j + 2 * lanes <= n; j += 2 * lanes)
    SmallMatmulBlock<kRows, 2>(d, a, b + j, b_row, c + j, c_row, k, accumulate);
  for (; j < n; j += lanes) SmallMatmulBlock<kRows, 1>(d, a, b + j, b_row, c + j, c_row, k, accumulate);
}

/// c [m, n] = or += a [m, k] b [k, n]. n is a multiple of the lanes; rows of b and c are padded to that.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void SmallMatmul(D d, TileA<T> a, const T* HWY_RESTRICT b, int64_t b_row, T* HWY_RESTRICT c, int64_t c_row,
                            int64_t m, int64_t n, int64_t k, bool accumulate) {
  int64_t i = 0;
  auto at = [&](int64_t row) { return TileA<T>{a.data + row * a.row, a.row, a.column}; };
  for (; i + 6 <= m; i += 6) SmallMatmulRows<6>(d, at(i), b, b_row, c + i * c_row, c_row, n, k, accumulate);
  for (; i + 2 <= m; i += 2) SmallMatmulRows<2>(d, at(i), b, b_row, c + i * c_row, c_row, n, k, accumulate);
  for (; i < m; ++i) SmallMatmulRows<1>(d, at(i), b, b_row, c + i * c_row, c_row, n, k, accumulate);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attune
HWY_AFTER_NAMESPACE();

#endif
