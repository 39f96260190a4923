#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attune/kernels/cpu/gemm/panel_linear_integer.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "attune/kernels/cpu/gemm/panel_block.h"
#include "attune/kernels/cpu/gemm/panel_linear_arm.h"
#include "attune/kernels/cpu/gemm/panel_linear_x86.h"
#include "attune/kernels/cpu/simd_inl.h"

HWY_BEFORE_NAMESPACE();
namespace attune {
namespace HWY_NAMESPACE {
namespace {

using cpu::PanelBlock;
using cpu::QuantisedRows;

// One row, or the numbers of one that have a scale of their own; returns the scale. A number that is not finite makes
// the scale NaN, so that a broken row is seen.
float QuantiseSome(const float* x, size_t count, int32_t offset, uint8_t* numbers, int32_t* sum) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const hn::Rebind<uint8_t, decltype(d)> d8;
  auto largest = hn::Zero(d), broken = hn::Zero(d);
  ForEachVector(d, count, [&](size_t i, auto part) HWY_ATTR {
    const auto value = part.Load(d, x + i);
    largest = hn::Max(hn::Abs(value), largest);
    broken = hn::Add(broken, hn::Sub(value, value));  // 0, or NaN
  });
  const float most = hn::GetLane(hn::MaxOfLanes(d, largest));
  const float not_a_number = hn::GetLane(hn::SumOfLanes(d, broken));
  const bool usable = most >= std::numeric_limits<float>::min() * 127 && not_a_number == 0;
  const auto inverse = hn::Set(d, usable ? 127 / most : 0.0f);
  auto sums = hn::Zero(di);
  const size_t lanes = hn::Lanes(d);
  const auto quantised = [&](auto value) HWY_ATTR {
    const auto q = hn::NearestInt(hn::Mul(value, inverse));
    sums = hn::Add(sums, q);
    return hn::TruncateTo(d8, hn::BitCast(hn::RebindToUnsigned<decltype(d)>(), hn::Add(q, hn::Set(di, offset))));
  };
  size_t i = 0;
  for (; usable && i + lanes <= count; i += lanes) hn::StoreU(quantised(hn::LoadU(d, x + i)), d8, numbers + i);
  if (usable && i < count) {
    HWY_ALIGN uint8_t bytes[HWY_LANES(float)];
    hn::Store(quantised(PartOfVector{count - i}.Load(d, x + i)), d8, bytes);
    std::copy_n(bytes, count - i, numbers + i);
  }
  if (!usable) std::fill_n(numbers, count, static_cast<uint8_t>(offset));
  *sum = hn::GetLane(hn::SumOfLanes(di, sums));
  return not_a_number == 0 ? (usable ? most / 127 : 0.0f) : std::numeric_limits<float>::quiet_NaN();
}

void QuantiseRows(WeightFormat format, const float* x, size_t rows, size_t in, const QuantisedRows& to) {
  const auto stride = static_cast<size_t>(to.stride), scales = static_cast<size_t>(to.scales_of_row);
  const bool int8 = format == WeightFormat::int8;
  for (size_t r = 0; r < rows; ++r) {
    uint8_t* const numbers = to.numbers + r * stride;
    const size_t length = int8 ? in : kGroupInputs;
    for (size_t g = 0; g < scales; ++g) {
      const size_t begin = g * length;
      int32_t sum = 0;
      to.scales[r * scales + g] =
          QuantiseSome(x + r * in + begin, std::min(length, in - begin), int8 ? 128 : 0, numbers + begin, &sum);
      to.offsets[r * scales + g] = -8 * sum;
    }
    std::memset(numbers + in, 0, stride - in);
  }
}

using Lanes = hn::CappedTag<float, kPanelOutputs>;
constexpr size_t kLanes = HWY_MIN(HWY_LANES(float), kPanelOutputs);
constexpr size_t kVectors = kPanelOutputs / kLanes;
using Floats = hn::Vec<Lanes>;
using Integers = hn::Vec<hn::RebindToSigned<Lanes>>;

// sums[j] += the sum of 4 products of numbers x, whose type is Byte, with the weights [16][4].
template <class Byte>
HWY_INLINE void AddQuad(const uint8_t* x, const Integers (&weights)[kVectors], Integers (&sums)[kVectors]) {
  const hn::RebindToSigned<Lanes> di;
  const auto number = [&](size_t i) HWY_ATTR { return static_cast<int32_t>(static_cast<Byte>(x[i])); };
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  // Two numbers of 16 bits at a time; here Highway's sum of two neighbouring products stays in their place.
  const hn::Repartition<int16_t, decltype(di)> d16;
  const auto pair = [&](int32_t a, int32_t b) HWY_ATTR {
    return hn::BitCast(
        d16, hn::Set(di, static_cast<int32_t>((static_cast<uint32_t>(a) & 0xffffu) | static_cast<uint32_t>(b) << 16)));
  };
  const auto even = pair(number(0), number(2)), odd = pair(number(1), number(3));
  for (size_t v = 0; v < kVectors; ++v) {
    const auto both = hn::BitCast(d16, weights[v]);
    Integers none = hn::Zero(di);
    sums[v] = hn::ReorderWidenMulAccumulate(di, hn::ShiftRight<8>(hn::ShiftLeft<8>(both)), even, sums[v], none);
    sums[v] = hn::ReorderWidenMulAccumulate(di, hn::ShiftRight<8>(both), odd, sums[v], none);
  }
#else
  for (size_t v = 0; v < kVectors; ++v) {
    const auto product = [&](auto w, size_t i)
                             HWY_ATTR { return hn::Mul(hn::ShiftRight<24>(w), hn::Set(di, number(i))); };
    sums[v] = hn::Add(sums[v], product(hn::ShiftLeft<24>(weights[v]), 0));
    sums[v] = hn::Add(sums[v], product(hn::ShiftLeft<16>(weights[v]), 1));
    sums[v] = hn::Add(sums[v], product(hn::ShiftLeft<8>(weights[v]), 2));
    sums[v] = hn::Add(sums[v], product(weights[v], 3));
  }
#endif
}

HWY_INLINE void LoadQuad(const std::byte* p, Integers (&weights)[kVectors]) {
  const hn::RebindToSigned<Lanes> di;
  for (size_t v = 0; v < kVectors; ++v) weights[v] = hn::LoadU(di, reinterpret_cast<const int32_t*>(p) + v * kLanes);
}

// y of one row and panel.
HWY_INLINE void Finish(const Floats (&values)[kVectors], const PanelBlock& b, size_t row, size_t output) {
  const Lanes d;
  const size_t count = HWY_MIN(kPanelOutputs, static_cast<size_t>(b.outputs) - output);
  float* const y = b.y + row * static_cast<size_t>(b.width) + output;
  for (size_t v = 0; v < kVectors && v * kLanes < count; ++v) {
    const auto finish = [&](auto part) HWY_ATTR {
      const Floats bias = b.bias != nullptr ? part.Load(d, b.bias + output + v * kLanes) : hn::Zero(d);
      part.Store(d, hn::Add(values[v], bias), y + v * kLanes);
    };
    if ((v + 1) * kLanes <= count) {
      finish(WholeVector{});
    } else {
      finish(PartOfVector{count - v * kLanes});
    }
  }
}

void Int8Block(const QuantisedRows& x, const PanelBlock& b) {
#if HWY_TARGET == HWY_AVX3
  if (cpu::integer_block_avx512(x, b)) return;
#elif HWY_TARGET == HWY_NEON
  if (cpu::integer_block_arm(x, b)) return;
#endif
  const Lanes d;
  const auto quads = static_cast<size_t>(divide_up(b.weight.in, 4));
  for (int64_t p = 0; p < panel_count(b.outputs); ++p) {
    const std::byte* const panel = b.weight.panel(p);
    const auto* const scales = reinterpret_cast<const float*>(b.weight.scales_of(p));
    for (size_t r = 0; r < static_cast<size_t>(b.rows); ++r) {
      Integers sums[kVectors], weights[kVectors];
      LoadQuad(panel, sums);
      for (size_t k = 0; k < quads; ++k) {
        LoadQuad(panel + (k + 1) * kPanelRow, weights);
        AddQuad<uint8_t>(x.numbers + r * static_cast<size_t>(x.stride) + k * 4, weights, sums);
      }
      Floats values[kVectors];
      for (size_t v = 0; v < kVectors; ++v)
        values[v] =
            hn::Mul(hn::ConvertTo(d, sums[v]), hn::Mul(hn::LoadU(d, scales + v * kLanes), hn::Set(d, x.scales[r])));
      Finish(values, b, r, static_cast<size_t>(p * kPanelOutputs));
    }
  }
}

void Int4Block(const QuantisedRows& x, const PanelBlock& b) {
#if HWY_TARGET == HWY_AVX3
  if (cpu::integer_block_avx512(x, b)) return;
#elif HWY_TARGET == HWY_NEON
  if (cpu::integer_block_arm(x, b)) return;
#endif
  const Lanes d;
  const hn::RebindToSigned<Lanes> di;
  const hn::Rebind<uint16_t, Lanes> d16;
  const auto low = hn::Set(di, 0x0f0f0f0f);
  const auto groups = static_cast<size_t>(x.scales_of_row);
  for (int64_t p = 0; p < panel_count(b.outputs); ++p) {
    const std::byte* const panel = b.weight.panel(p);
    const auto* const scales = reinterpret_cast<const uint16_t*>(b.weight.scales_of(p));
    for (size_t r = 0; r < static_cast<size_t>(b.rows); ++r) {
      Floats values[kVectors];
      for (size_t v = 0; v < kVectors; ++v) values[v] = hn::Zero(d);
      for (size_t g = 0; g < groups; ++g) {
        Integers sums[kVectors], both[kVectors], half[kVectors];
        const uint8_t* const numbers = x.numbers + r * static_cast<size_t>(x.stride) + g * kGroupInputs;
        for (size_t v = 0; v < kVectors; ++v) sums[v] = hn::Set(di, x.offsets[r * groups + g]);
        for (size_t i = 0; i < 4; ++i) {
          LoadQuad(panel + g * kGroupBytes + i * kPanelRow, both);
          for (size_t v = 0; v < kVectors; ++v) half[v] = hn::And(both[v], low);
          AddQuad<int8_t>(numbers + 4 * i, half, sums);
          for (size_t v = 0; v < kVectors; ++v) half[v] = hn::And(hn::ShiftRight<4>(both[v]), low);
          AddQuad<int8_t>(numbers + 16 + 4 * i, half, sums);
        }
        for (size_t v = 0; v < kVectors; ++v) {
          const auto bits = hn::PromoteTo(di, hn::LoadU(d16, scales + g * kPanelOutputs + v * kLanes));
          const auto scale = hn::BitCast(d, hn::ShiftLeft<16>(bits));
          const auto step = hn::Mul(scale, hn::Set(d, x.scales[r * groups + g]));
          values[v] = hn::Add(values[v], hn::Mul(hn::ConvertTo(d, sums[v]), step));
        }
      }
      Finish(values, b, r, static_cast<size_t>(p * kPanelOutputs));
    }
  }
}

}  // namespace
// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attune
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attune {
namespace {

HWY_EXPORT(QuantiseRows);
HWY_EXPORT(Int8Block);
HWY_EXPORT(Int4Block);

}  // namespace

void cpu::quantise_rows(WeightFormat format, const float* x, int64_t rows, int64_t in, const QuantisedRows& to) {
  HWY_DYNAMIC_DISPATCH(QuantiseRows)(format, x, static_cast<size_t>(rows), static_cast<size_t>(in), to);
}

void cpu::integer_block(const QuantisedRows& x, const PanelBlock& block) {
  if (block.weight.format == WeightFormat::int8) return HWY_DYNAMIC_DISPATCH(Int8Block)(x, block);
  HWY_DYNAMIC_DISPATCH(Int4Block)(x, block);
}

}  // namespace attune
#endif
