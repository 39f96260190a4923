#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attune/kernels/cpu/rotary.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

#include "attune/base/parallel.h"
#include "attune/kernels/cpu/simd_inl.h"
#include "attune/kernels/rotary.h"
#include "attune/kernels/row_grain.h"

HWY_BEFORE_NAMESPACE();
namespace attune {
namespace HWY_NAMESPACE {
namespace {

// Both numbers of a pair, rotated; a sine with the other sign rotates back.
template <class V>
struct Pair {
  V a, b;
};
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
  Pair<hn::Vec<decltype(d)>> pair;
  size_t i = 0;
  for (; i + lanes <= pairs; i += lanes) {
    hn::LoadInterleaved2(d, x + 2 * i, pair.a, pair.b);
    const auto result = Rotated(pair, hn::LoadU(d, cosines + i), hn::Mul(hn::LoadU(d, sines + i), signs));
    hn::StoreInterleaved2(result.a, result.b, d, y + 2 * i);
  }
  if (i == pairs) return;
  // The rest through a whole vector, so that the last pairs are rounded like all others.
  HWY_ALIGN T rest[2 * HWY_LANES(T)] = {};
  std::copy_n(x + 2 * i, 2 * (pairs - i), rest);
  const PartOfVector part{pairs - i};
  hn::LoadInterleaved2(d, rest, pair.a, pair.b);
  const auto result = Rotated(pair, part.Load(d, cosines + i), hn::Mul(part.Load(d, sines + i), signs));
  hn::StoreInterleaved2(result.a, result.b, d, rest);
  std::copy_n(rest, 2 * (pairs - i), y + 2 * i);
}

template <class T>
void RotateRows(const RotaryRows<T>& a, int64_t begin, int64_t end) {
  const auto pairs = static_cast<size_t>(a.pairs);
  const T sign = a.back ? T{-1} : T{1};
  for (int64_t row = begin; row < end; ++row) {
    const T* cosines = a.table + a.table_rows[row] * 2 * a.pairs;
    const T* sines = cosines + a.pairs;
    for (int64_t h = 0; h < a.rotated; ++h) {
      const int64_t at = (row * a.heads + h) * a.d;
      if (a.pairing == RotaryPairing::half) {
        RotateHalves(a.x + at, cosines, sines, sign, pairs, a.y + at);
      } else {
        RotateNeighbours(a.x + at, cosines, sines, sign, pairs, a.y + at);
      }
      std::copy(a.x + at + 2 * a.pairs, a.x + at + a.d, a.y + at + 2 * a.pairs);
    }
    const int64_t rest = (row * a.heads + a.rotated) * a.d;
    std::copy(a.x + rest, a.x + (row + 1) * a.heads * a.d, a.y + rest);
  }
}

void RotateRows32(const RotaryRows<float>& a, int64_t begin, int64_t end) {
  RotateRows(a, begin, end);
}
void RotateRows64(const RotaryRows<double>& a, int64_t begin, int64_t end) {
  RotateRows(a, begin, end);
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
void fill_table(const RotaryTable<T>& a) {
  const std::vector<double>& frequencies = a.frequencies.frequencies;
  const auto pairs = static_cast<int64_t>(frequencies.size());
  // A sine and a cosine cost about as much as forty passes over an element.
  parallel_for(a.rows, row_grain(40 * pairs), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const auto place = static_cast<double>(a.positions != nullptr ? a.positions[row] : a.first + row);
      T* cosines = a.table + row * 2 * pairs;
      for (int64_t i = 0; i < pairs; ++i) {
        const double angle = place * frequencies[static_cast<size_t>(i)];
        cosines[i] = static_cast<T>(std::cos(angle) * a.frequencies.magnitude);
        cosines[pairs + i] = static_cast<T>(std::sin(angle) * a.frequencies.magnitude);
      }
    }
  });
}

}  // namespace

void rotary_table(Cpu, const RotaryTable<float>& a) {
  fill_table(a);
}
void rotary_table(Cpu, const RotaryTable<double>& a) {
  fill_table(a);
}
void rotary_rows(Cpu, const RotaryRows<float>& a) {
  parallel_for(a.n, row_grain(a.heads * a.d), [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(RotateRows32)(a, begin, end);
  });
}
void rotary_rows(Cpu, const RotaryRows<double>& a) {
  parallel_for(a.n, row_grain(a.heads * a.d), [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(RotateRows64)(a, begin, end);
  });
}

}  // namespace attune
#endif  // HWY_ONCE
