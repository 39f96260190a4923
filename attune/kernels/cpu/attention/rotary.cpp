#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attune/kernels/cpu/attention/rotary.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

#include "attune/base/parallel.h"
#include "attune/kernels/attention/rotary.h"
#include "attune/kernels/cpu/for_type.h"
#include "attune/kernels/cpu/simd_inl.h"
#include "attune/kernels/for_dtype.h"
#include "attune/kernels/row_grain.h"

HWY_BEFORE_NAMESPACE();
namespace attune {
namespace HWY_NAMESPACE {
namespace {

// Made from two vectors, never by its own constructor: the compiler would make that for the oldest processor.
template <class V>
struct Pair {
  V a, b;
};

// Returns both numbers of a pair, rotated. The negative sine rotates back.
template <class V>
HWY_INLINE Pair<V> Rotated(Pair<V> x, V cosine, V sine) {
  return {hn::NegMulAdd(x.b, sine, hn::Mul(x.a, cosine)), hn::MulAdd(x.a, sine, hn::Mul(x.b, cosine))};
}

template <class T>
HWY_INLINE void RotateHalves(const T* x, const T* cosines, const T* sines, T sign, size_t pairs, T* y) {
  const hn::ScalableTag<T> d;
  const auto signs = hn::Set(d, sign);
  ForEachVector(d, pairs, [&](size_t i, auto part) HWY_ATTR {
    const Pair<hn::Vec<decltype(d)>> pair{part.Load(d, x + i), part.Load(d, x + pairs + i)};
    const auto result = Rotated(pair, part.Load(d, cosines + i), hn::Mul(part.Load(d, sines + i), signs));
    part.Store(d, result.a, y + i);
    part.Store(d, result.b, y + pairs + i);
  });
}

template <class T>
HWY_INLINE void RotateNeighbours(const T* x, const T* cosines, const T* sines, T sign, size_t pairs, T* y) {
  const hn::ScalableTag<T> d;
  const auto signs = hn::Set(d, sign);
  const size_t lanes = hn::Lanes(d);
  hn::Vec<decltype(d)> a, b;
  size_t i = 0;
  for (; i + lanes <= pairs; i += lanes) {
    hn::LoadInterleaved2(d, x + 2 * i, a, b);
    const auto result = Rotated({a, b}, hn::LoadU(d, cosines + i), hn::Mul(hn::LoadU(d, sines + i), signs));
    hn::StoreInterleaved2(result.a, result.b, d, y + 2 * i);
  }
  if (i == pairs) return;
  // Copies the rest into a whole vector, so that the last pairs are rounded as all others.
  HWY_ALIGN T rest[2 * HWY_LANES(T)] = {};
  std::copy_n(x + 2 * i, 2 * (pairs - i), rest);
  const PartOfVector part{pairs - i};
  hn::LoadInterleaved2(d, rest, a, b);
  const auto result = Rotated({a, b}, part.Load(d, cosines + i), hn::Mul(part.Load(d, sines + i), signs));
  hn::StoreInterleaved2(result.a, result.b, d, rest);
  std::copy_n(rest, 2 * (pairs - i), y + 2 * i);
}

template <class T>
void RotateRows(const RotaryRows& a, int64_t begin, int64_t end) {
  const int64_t heads = a.x.size(1), d = a.x.size(2), pairs = a.table.size(2);
  const T *x = a.x.data<T>(), *table = a.table.data<T>();
  const int32_t* table_rows = a.table_rows.data<int32_t>();
  T* y = a.y.data<T>();
  const T sign = a.back ? T{-1} : T{1};
  for (int64_t row = begin; row < end; ++row) {
    const T* cosines = table + 2 * pairs * table_rows[row];
    const T* sines = cosines + pairs;
    for (int64_t h = 0; h < a.rotated; ++h) {
      const int64_t at = (row * heads + h) * d;
      if (a.pairing == RotaryPairing::half) {
        RotateHalves(x + at, cosines, sines, sign, static_cast<size_t>(pairs), y + at);
      } else {
        RotateNeighbours(x + at, cosines, sines, sign, static_cast<size_t>(pairs), y + at);
      }
      std::copy(x + at + 2 * pairs, x + at + d, y + at + 2 * pairs);
    }
    const int64_t rest = (row * heads + a.rotated) * d;
    std::copy(x + rest, x + (row + 1) * heads * d, y + rest);
  }
}

void RotateRows32(const RotaryRows& a, int64_t begin, int64_t end) {
  RotateRows<float>(a, begin, end);
}
void RotateRows64(const RotaryRows& a, int64_t begin, int64_t end) {
  RotateRows<double>(a, begin, end);
}

}  // namespace
// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attune
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attune {
namespace {

HWY_EXPORT(RotateRows32);
HWY_EXPORT(RotateRows64);

template <class T>
void fill_table(const RotaryFrequencies& rotations, const int32_t* positions, int64_t first, const Tensor& table) {
  const int64_t pairs = table.size(2);
  // A sine and a cosine take about as long as forty rotations of an element.
  parallel_for(table.size(0), row_grain(40 * pairs), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const auto position = static_cast<double>(positions != nullptr ? positions[row] : first + row);
      T* cosines = table.data<T>() + row * 2 * pairs;
      for (int64_t i = 0; i < pairs; ++i) {
        const double angle = position * rotations.frequencies[static_cast<size_t>(i)];
        cosines[i] = static_cast<T>(std::cos(angle) * rotations.magnitude);
        cosines[pairs + i] = static_cast<T>(std::sin(angle) * rotations.magnitude);
      }
    }
  });
}

}  // namespace

void rotary_table(Cpu, const RotaryFrequencies& frequencies, const Tensor& positions, int64_t first,
                  const Tensor& table) {
  dispatch_floating("rotary", table.dtype(),
                    [&]<class T>(T) { fill_table<T>(frequencies, data_or_null<int32_t>(positions), first, table); });
}

void rotary_rows(Cpu, const RotaryRows& a) {
  dispatch_floating("rotary", a.x.dtype(), [&]<class T>(T) {
    parallel_for(a.x.size(0), row_grain(a.x.size(1) * a.x.size(2)), [&](int64_t begin, int64_t end) {
      for_type<T>(HWY_DYNAMIC_DISPATCH(RotateRows32), HWY_DYNAMIC_DISPATCH(RotateRows64))(a, begin, end);
    });
  });
}

}  // namespace attune
#endif  // HWY_ONCE
