#include "attune/kernels/per_head_matmul.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attune/kernels/cpu/per_head_matmul.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

#include <algorithm>

#include "attune/kernels/cpu/row_products_inl.h"

HWY_BEFORE_NAMESPACE();
namespace attune {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int64_t kBlock = 64;  // rows of W whose sum is formed at once

template <class T>
void TimesRows(const HeadProduct<T>& p) {
  const hn::ScalableTag<T> d;
  for (int64_t begin = 0; begin < p.in; begin += kBlock) {
    const int64_t count = std::min(kBlock, p.in - begin);
    const T* rows[kBlock];
    for (int64_t i = 0; i < count; ++i) rows[i] = p.weight + (begin + i) * p.out;
    ForEachTileOfQueries(p.rows, [&](int64_t r, auto queries) HWY_ATTR {
      T* y[decltype(queries)::value];
      for (int64_t i = 0; i < decltype(queries)::value; ++i) y[i] = p.y + (r + i) * p.y_row;
      SumRows<decltype(queries)::value>(d, p.x + r * p.x_row + begin, p.x_row, rows, count, 0, p.out, begin > 0, y);
    });
  }
}

template <class T>
void TimesColumns(const HeadProduct<T>& p) {
  const hn::ScalableTag<T> d;
  ForEachTileOfQueries(p.rows, [&](int64_t r, auto queries) HWY_ATTR {
    constexpr int kQueries = decltype(queries)::value, kRows = kTileRows<kQueries, T>;
    HWY_ALIGN T dots[kQueries * kRows];
    const T* x[kQueries];
    for (int64_t i = 0; i < kQueries; ++i) x[i] = p.x + (r + i) * p.x_row;
    for (int64_t o = 0; o < p.out; o += kRows) {
      const T* rows[kRows];
      for (int64_t u = 0; u < kRows; ++u) rows[u] = p.weight + std::min(o + u, p.out - 1) * p.in;
      DotTile<kQueries>(d, x, rows, 0, p.in, dots);
      for (int64_t i = 0; i < kQueries; ++i)
        std::copy_n(dots + i * kRows, std::min<int64_t>(kRows, p.out - o), p.y + (r + i) * p.y_row + o);
    }
  });
}

void TimesRowsF32(const HeadProduct<float>& p) {
  TimesRows(p);
}
void TimesRowsF64(const HeadProduct<double>& p) {
  TimesRows(p);
}
void TimesColumnsF32(const HeadProduct<float>& p) {
  TimesColumns(p);
}
void TimesColumnsF64(const HeadProduct<double>& p) {
  TimesColumns(p);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attune
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attune {

HWY_EXPORT(TimesRowsF32);
HWY_EXPORT(TimesRowsF64);
HWY_EXPORT(TimesColumnsF32);
HWY_EXPORT(TimesColumnsF64);

void head_matmul(Cpu, const HeadProduct<float>& product) {
  HWY_DYNAMIC_DISPATCH(TimesRowsF32)(product);
}
void head_matmul(Cpu, const HeadProduct<double>& product) {
  HWY_DYNAMIC_DISPATCH(TimesRowsF64)(product);
}
void head_matmul_transposed(Cpu, const HeadProduct<float>& product) {
  HWY_DYNAMIC_DISPATCH(TimesColumnsF32)(product);
}
void head_matmul_transposed(Cpu, const HeadProduct<double>& product) {
  HWY_DYNAMIC_DISPATCH(TimesColumnsF64)(product);
}

}  // namespace attune
#endif  // HWY_ONCE
