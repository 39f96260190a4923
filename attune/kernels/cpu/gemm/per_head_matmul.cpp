#include "attune/kernels/gemm/per_head_matmul.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attune/kernels/cpu/gemm/per_head_matmul.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

#include <algorithm>

#include "attune/base/parallel.h"
#include "attune/base/rounding.h"
#include "attune/kernels/cpu/for_type.h"
#include "attune/kernels/cpu/gemm/head_product.h"
#include "attune/kernels/cpu/row_products_inl.h"

HWY_BEFORE_NAMESPACE();
namespace attune {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int64_t kBlock = 64;  // rows of W that are summed at once

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
      SumRows<decltype(queries)::value>(d, {p.x + r * p.x_row + begin, p.x_row}, {rows, count, 0},
                                        {y, p.out, begin > 0});
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
namespace {

HWY_EXPORT(TimesRowsF32);
HWY_EXPORT(TimesRowsF64);
HWY_EXPORT(TimesColumnsF32);
HWY_EXPORT(TimesColumnsF64);

// Calls times(product) for each head, with some rows at a time.
template <class T, class Times>
void each_head(const Tensor& x, const Tensor& weight, const Tensor& y, Times times) {
  constexpr int64_t kRows = 16, kWorthAThread = int64_t{1} << 18;
  const int64_t rows = x.size(0), heads = x.size(1), in = x.size(2), out = y.size(2);
  const int64_t blocks = divide_up(rows, kRows), products = std::max<int64_t>(1, std::min(rows, kRows) * in * out);
  const T* const from = x.data<T>();
  const T* const matrices = weight.data<T>();
  T* const to = y.data<T>();
  parallel_for(blocks * heads, std::max<int64_t>(1, kWorthAThread / products), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t head = i / blocks, first = i % blocks * kRows;
      times(HeadProduct<T>{.x = from + (first * heads + head) * in,
                           .x_row = heads * in,
                           .weight = matrices + head * in * out,
                           .y = to + (first * heads + head) * out,
                           .y_row = heads * out,
                           .rows = std::min(kRows, rows - first),
                           .in = in,
                           .out = out});
    }
  });
}

}  // namespace

void per_head_matmul(Cpu, const Tensor& x, const Tensor& weight, const Tensor& y) {
  dispatch_floating("per_head_matmul", x.dtype(), [&]<class T>(T) {
    each_head<T>(x, weight, y, [](const HeadProduct<T>& product) {
      for_type<T>(HWY_DYNAMIC_DISPATCH(TimesRowsF32), HWY_DYNAMIC_DISPATCH(TimesRowsF64))(product);
    });
  });
}

void per_head_matmul_transposed(Cpu, const Tensor& x, const Tensor& weight, const Tensor& y) {
  dispatch_floating("per_head_matmul_transposed", x.dtype(), [&]<class T>(T) {
    each_head<T>(x, weight, y, [](const HeadProduct<T>& product) {
      for_type<T>(HWY_DYNAMIC_DISPATCH(TimesColumnsF32), HWY_DYNAMIC_DISPATCH(TimesColumnsF64))(product);
    });
  });
}

}  // namespace attune
#endif  // HWY_ONCE
