// Products of a few vectors with rows that may lie anywhere in memory: dot products, and weighted sums of the rows.
// Included once for each target (Highway). Every result is formed in one order, whatever else is formed beside it.

#if defined(ATTUNE_KERNELS_ROW_PRODUCTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTUNE_KERNELS_ROW_PRODUCTS_INL_H_
#undef ATTUNE_KERNELS_ROW_PRODUCTS_INL_H_
#else
#define ATTUNE_KERNELS_ROW_PRODUCTS_INL_H_
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

#include "attune/kernels/cpu/simd_inl.h"

HWY_BEFORE_NAMESPACE();
namespace attune {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Vectors that stay in registers while rows stream by. With 32 registers four share a loaded row, else two.
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON
constexpr int kTileQueries = 4;
#else
constexpr int kTileQueries = 2;
#endif

/// The sums of the lanes of kCount vectors, sums[i] of vector i: pairs of neighbours are added until one is left.
template <int kCount, class D, class V = hn::Vec<D>, class T = hn::TFromD<D>>
HWY_INLINE void SumsOfLanes(D d, V* v, T* HWY_RESTRICT sums) {
  constexpr auto kLanes = static_cast<int>(HWY_LANES(T));
  static_assert(kCount % kLanes == 0);
#if HWY_TARGET != HWY_SCALAR
  for (int first = 0; first < kCount; first += kLanes) {
    V* group = v + first;
    for (int count = kLanes; count > 1; count /= 2) {
      for (ptrdiff_t i = 0; i < count / 2; ++i) {
        const V a = group[2 * i], b = group[2 * i + 1];
        group[i] = hn::Add(hn::ConcatEven(d, b, a), hn::ConcatOdd(d, b, a));
      }
    }
  }
#endif
  for (int first = 0; first < kCount; first += kLanes) hn::StoreU(v[first], d, sums + first);
}

/// Rows of one DotTile.
template <int kQueries, class T>
constexpr int kTileRows = std::max(1, static_cast<int>(HWY_LANES(T)) / kQueries);

/// dots[i * kTileRows + j] = q[i] . (rows[j] + offset), n numbers each.
template <int kQueries, class D, class T = hn::TFromD<D>>
HWY_INLINE void DotTile(D d, const T* const* q, const T* const* rows, int64_t offset, int64_t n, T* HWY_RESTRICT dots) {
  using V = hn::Vec<D>;
  constexpr int kRows = kTileRows<kQueries, T>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V sum[kQueries * kRows];
  for (V& s : sum) s = hn::Zero(d);
  const T* row[kRows];
  for (int j = 0; j < kRows; ++j) row[j] = rows[j] + offset;
  const auto add = [&](int64_t c, auto part) HWY_ATTR {
    V x[kRows];
    for (int j = 0; j < kRows; ++j) x[j] = part.Load(d, row[j] + c);
    for (int i = 0; i < kQueries; ++i) {
      const V y = part.Load(d, q[i] + c);
      for (int j = 0; j < kRows; ++j) sum[i * kRows + j] = hn::MulAdd(y, x[j], sum[i * kRows + j]);
    }
  };
  int64_t c = 0;
  for (; c + lanes <= n; c += lanes) add(c, WholeVector{});
  if (c < n) add(c, PartOfVector{static_cast<size_t>(n - c)});
  SumsOfLanes<kQueries * kRows>(d, sum, dots);
}

/// `count` rows anywhere in memory: row j begins at begins[j] + offset.
template <class T>
struct ScatteredRows {
  const T* const* begins;
  int64_t count;
  int64_t offset;
};

/// The weights of sums: sum i multiplies row j with data[i * stride + j].
template <class T>
struct RowWeights {
  const T* data;
  int64_t stride;
};

/// Sums of weighted rows, `columns` numbers each: sum i is written to out[i], or added to what is there.
template <class T>
struct RowSums {
  T* const* out;
  int64_t columns;
  bool accumulate;
};

/// kVectors vectors of kQueries sums, from column c; rows in turn go to one of two sums, so that additions need not
/// wait for each other.
template <int kQueries, int kVectors, class Part, class D, class T = hn::TFromD<D>>
HWY_INLINE void SumTile(D d, RowWeights<T> weights, ScatteredRows<T> rows, RowSums<T> sums, Part part, int64_t c) {
  using V = hn::Vec<D>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const T* const* const begins = rows.begins;  // locals: GCC makes longer loops of members in `add`
  const int64_t offset = rows.offset, stride = weights.stride;
  const T* const weight = weights.data;
  V even[kQueries][kVectors], odd[kQueries][kVectors];
  for (int i = 0; i < kQueries; ++i)
    for (int k = 0; k < kVectors; ++k) even[i][k] = odd[i][k] = hn::Zero(d);
  const auto add = [&](int64_t j, auto& sum) HWY_ATTR {
    const T* row = begins[j] + offset + c;
    V x[kVectors];
    for (int k = 0; k < kVectors; ++k) x[k] = part.Load(d, row + k * lanes);
    for (int i = 0; i < kQueries; ++i) {
      const V w = hn::Set(d, weight[i * stride + j]);
      for (int k = 0; k < kVectors; ++k) sum[i][k] = hn::MulAdd(w, x[k], sum[i][k]);
    }
  };
  int64_t j = 0;
  for (; j + 2 <= rows.count; j += 2) {
    add(j, even);
    add(j + 1, odd);
  }
  if (j < rows.count) add(j, even);
  for (int i = 0; i < kQueries; ++i) {
    for (int k = 0; k < kVectors; ++k) {
      T* to = sums.out[i] + c + k * lanes;
      const V sum = hn::Add(even[i][k], odd[i][k]);
      part.Store(d, sums.accumulate ? hn::Add(part.Load(d, to), sum) : sum, to);
    }
  }
}

/// All columns of kQueries sums.
template <int kQueries, class D, class T = hn::TFromD<D>>
HWY_INLINE void SumRows(D d, RowWeights<T> weights, ScatteredRows<T> rows, RowSums<T> sums) {
  constexpr int kVectors = kQueries == 1 ? 4 : 2;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t n = sums.columns;
  int64_t c = 0;
  for (; c + kVectors * lanes <= n; c += kVectors * lanes)
    SumTile<kQueries, kVectors>(d, weights, rows, sums, WholeVector{}, c);
  if constexpr (kVectors == 4) {
    for (; c + 2 * lanes <= n; c += 2 * lanes) SumTile<kQueries, 2>(d, weights, rows, sums, WholeVector{}, c);
  }
  for (; c + lanes <= n; c += lanes) SumTile<kQueries, 1>(d, weights, rows, sums, WholeVector{}, c);
  if (c < n) SumTile<kQueries, 1>(d, weights, rows, sums, PartOfVector{static_cast<size_t>(n - c)}, c);
}

/// f(i, queries) for tiles of kTileQueries, 2 and 1 of `count` vectors; `queries` is an integral_constant.
template <class F>
HWY_INLINE void ForEachTileOfQueries(int64_t count, F&& f) {
  int64_t i = 0;
  for (; i + kTileQueries <= count; i += kTileQueries) f(i, std::integral_constant<int, kTileQueries>());
  if constexpr (kTileQueries > 2) {
    for (; i + 2 <= count; i += 2) f(i, std::integral_constant<int, 2>());
  }
  for (; i < count; ++i) f(i, std::integral_constant<int, 1>());
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attune
HWY_AFTER_NAMESPACE();

#endif
