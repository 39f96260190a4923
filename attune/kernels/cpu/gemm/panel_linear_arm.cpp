#include "attune/kernels/cpu/gemm/panel_linear_arm.h"

#if defined(__aarch64__) && defined(__linux__) && (defined(__GNUC__) || defined(__clang__))

#include <arm_neon.h>
#include <sys/auxv.h>

#include <algorithm>

#define ATTUNE_SDOT __attribute__((target("arch=armv8.2-a+dotprod")))
#define ATTUNE_I8MM __attribute__((target("arch=armv8.2-a+i8mm")))

namespace attune::cpu {
namespace {

constexpr size_t kVectors = 4;        // of 16 bytes in a row of a panel, each four outputs
constexpr size_t kMostRows = 4;       // of a tile: its sums and a vector of each row of x stay in registers
constexpr size_t kMostPairs = 3;      // of rows, with I8MM
constexpr int64_t kRowsForPairs = 4;  // below, bringing the weights into order costs what pairs save

struct Place {
  const QuantisedRows& x;
  const PanelBlock& block;
  int64_t row, panel;  // the first of the tile

  const uint8_t* numbers(size_t r) const { return x.numbers + (row + static_cast<int64_t>(r)) * x.stride; }
  const float* scales(size_t r) const { return x.scales + (row + static_cast<int64_t>(r)) * x.scales_of_row; }
  const int32_t* offsets(size_t r) const { return x.offsets + (row + static_cast<int64_t>(r)) * x.scales_of_row; }
};

// y of one row and panel.
inline void store(const PanelBlock& b, int64_t row, int64_t panel, const float32x4_t (&values)[kVectors]) {
  const int64_t output = panel * kPanelOutputs, count = std::min(kPanelOutputs, b.outputs - output);
  float* const y = b.y + row * b.width + output;
  if (count == kPanelOutputs) {
    for (size_t v = 0; v < kVectors; ++v) {
      const float32x4_t bias = b.bias != nullptr ? vld1q_f32(b.bias + output + 4 * v) : vdupq_n_f32(0);
      vst1q_f32(y + 4 * v, vaddq_f32(values[v], bias));
    }
    return;
  }
  float whole[kPanelOutputs];
  for (size_t v = 0; v < kVectors; ++v) vst1q_f32(whole + 4 * v, values[v]);
  for (int64_t j = 0; j < count; ++j) y[j] = whole[j] + (b.bias != nullptr ? b.bias[output + j] : 0.0f);
}

// Sums of one row and panel of int8, scaled.
inline void finish_int8(const Place& t, size_t r, int64_t panel, const int32x4_t (&sums)[kVectors]) {
  const auto* const of_panel = reinterpret_cast<const float*>(t.block.weight.scales_of(panel));
  const float32x4_t of_row = vdupq_n_f32(*t.scales(r));
  float32x4_t values[kVectors];
  for (size_t v = 0; v < kVectors; ++v)
    values[v] = vmulq_f32(vcvtq_f32_s32(sums[v]), vmulq_f32(vld1q_f32(of_panel + 4 * v), of_row));
  store(t.block, t.row + static_cast<int64_t>(r), panel, values);
}

// Four inputs, those in lane kLane of x, by kPanels panels. The numbers are signed here, and the sums
// that a panel begins with, which take the 128 away that was added, are not needed.
template <int kLane, size_t kRows, size_t kPanels>
ATTUNE_SDOT inline void add_quad(const std::byte* w, int64_t stride, const int8x16_t (&x)[kRows],
                                 int32x4_t (&sums)[kRows][kPanels][kVectors]) {
#pragma GCC unroll 8
  for (size_t p = 0; p < kPanels; ++p)
#pragma GCC unroll 8
    for (size_t v = 0; v < kVectors; ++v) {
      const int8x16_t weights =
          vld1q_s8(reinterpret_cast<const int8_t*>(w + static_cast<int64_t>(p) * stride) + 16 * v);
#pragma GCC unroll 8
      for (size_t r = 0; r < kRows; ++r) sums[r][p][v] = vdotq_laneq_s32(sums[r][p][v], weights, x[r], kLane);
    }
}

template <size_t kRows, size_t kPanels>
ATTUNE_SDOT void int8_tile(const Place& t) {
  const std::byte* w = t.block.weight.panel(t.panel) + kPanelRow;
  const int64_t stride = panel_bytes(WeightFormat::int8, t.block.weight.in), quads = divide_up(t.block.weight.in, 4);
  int32x4_t sums[kRows][kPanels][kVectors];
#pragma GCC unroll 8
  for (size_t r = 0; r < kRows; ++r)
#pragma GCC unroll 8
    for (size_t p = 0; p < kPanels; ++p)
#pragma GCC unroll 8
      for (size_t v = 0; v < kVectors; ++v) sums[r][p][v] = vdupq_n_s32(0);
  for (int64_t k = 0; k < quads; k += 4) {
    int8x16_t x[kRows];
#pragma GCC unroll 8
    for (size_t r = 0; r < kRows; ++r)
      x[r] = vreinterpretq_s8_u8(veorq_u8(vld1q_u8(t.numbers(r) + 4 * k), vdupq_n_u8(128)));
    const int64_t left = quads - k;
    add_quad<0>(w, stride, x, sums);
    if (left > 1) add_quad<1>(w + kPanelRow, stride, x, sums);
    if (left > 2) add_quad<2>(w + 2 * kPanelRow, stride, x, sums);
    if (left > 3) add_quad<3>(w + 3 * kPanelRow, stride, x, sums);
    w += 4 * kPanelRow;
  }
  for (size_t r = 0; r < kRows; ++r)
    for (size_t p = 0; p < kPanels; ++p) finish_int8(t, r, t.panel + static_cast<int64_t>(p), sums[r][p]);
}

// Four inputs of each half of a group.
template <int kLane, size_t kRows>
ATTUNE_SDOT inline void add_both_halves(const std::byte* w, const int8x16_t (&first)[kRows],
                                        const int8x16_t (&second)[kRows], int32x4_t (&sums)[kRows]) {
  const uint8x16_t both = vld1q_u8(reinterpret_cast<const uint8_t*>(w) + kLane * kPanelRow);
  const int8x16_t low = vreinterpretq_s8_u8(vandq_u8(both, vdupq_n_u8(15))),
                  high = vreinterpretq_s8_u8(vshrq_n_u8(both, 4));
#pragma GCC unroll 8
  for (size_t r = 0; r < kRows; ++r)
    sums[r] = vdotq_laneq_s32(vdotq_laneq_s32(sums[r], low, first[r], kLane), high, second[r], kLane);
}

template <size_t kRows>
ATTUNE_SDOT void int4_tile(const Place& t) {
  const std::byte* w = t.block.weight.panel(t.panel);
  const auto* const scales = reinterpret_cast<const uint16_t*>(t.block.weight.scales_of(t.panel));
  float32x4_t values[kRows][kVectors];
  for (size_t r = 0; r < kRows; ++r)
    for (size_t v = 0; v < kVectors; ++v) values[r][v] = vdupq_n_f32(0);
  for (int64_t g = 0; g < t.x.scales_of_row; ++g, w += kGroupBytes) {
    int8x16_t first[kRows], second[kRows];
#pragma GCC unroll 8
    for (size_t r = 0; r < kRows; ++r) {
      const auto* const x = reinterpret_cast<const int8_t*>(t.numbers(r)) + g * kGroupInputs;
      first[r] = vld1q_s8(x);
      second[r] = vld1q_s8(x + 16);
    }
#pragma GCC unroll 8
    for (size_t v = 0; v < kVectors; ++v) {
      int32x4_t sums[kRows];
#pragma GCC unroll 8
      for (size_t r = 0; r < kRows; ++r) sums[r] = vdupq_n_s32(t.offsets(r)[g]);
      add_both_halves<0>(w + 16 * v, first, second, sums);
      add_both_halves<1>(w + 16 * v, first, second, sums);
      add_both_halves<2>(w + 16 * v, first, second, sums);
      add_both_halves<3>(w + 16 * v, first, second, sums);
      const float32x4_t of_panel =
          vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(scales + g * kPanelOutputs + 4 * static_cast<int64_t>(v)), 16));
#pragma GCC unroll 8
      for (size_t r = 0; r < kRows; ++r) {
        const float32x4_t scale = vmulq_f32(of_panel, vdupq_n_f32(t.scales(r)[g]));
        values[r][v] = vaddq_f32(values[r][v], vmulq_f32(vcvtq_f32_s32(sums[r]), scale));
      }
    }
  }
  for (size_t r = 0; r < kRows; ++r) store(t.block, t.row + static_cast<int64_t>(r), t.panel, values[r]);
}

// Two rows, eight numbers of each.
inline uint8x16_t two_rows(const Place& t, size_t pair, int64_t k) {
  return vcombine_u8(vld1_u8(t.numbers(2 * pair) + k), vld1_u8(t.numbers(2 * pair + 1) + k));
}

// A sum is four numbers: two rows by two outputs.
template <size_t kPairs>
ATTUNE_I8MM void int8_pairs(const Place& t, int64_t rows) {
  const std::byte* w = t.block.weight.panel(t.panel);
  const auto load = [](const std::byte* from, size_t v) {
    return vld1q_s32(reinterpret_cast<const int32_t*>(from) + 4 * v);
  };
  int32x4_t sums[kPairs][2 * kVectors];
  for (size_t v = 0; v < kVectors; ++v) {
    const int64x2_t begin = vreinterpretq_s64_s32(load(w, v));
    for (size_t p = 0; p < kPairs; ++p) {
      sums[p][2 * v] = vreinterpretq_s32_s64(vdupq_laneq_s64(begin, 0));
      sums[p][2 * v + 1] = vreinterpretq_s32_s64(vdupq_laneq_s64(begin, 1));
    }
  }
  const int64_t quads = divide_up(t.block.weight.in, 4);
  for (int64_t k = 0; k < quads; k += 2) {
    w += kPanelRow;
    const bool both = k + 1 < quads;
    uint8x16_t x[kPairs];
#pragma GCC unroll 8
    for (size_t p = 0; p < kPairs; ++p) x[p] = two_rows(t, p, 4 * k);
#pragma GCC unroll 8
    for (size_t v = 0; v < kVectors; ++v) {
      const int32x4_t first = load(w, v), second = both ? load(w + kPanelRow, v) : vdupq_n_s32(0);
      const int8x16_t low = vreinterpretq_s8_s32(vzip1q_s32(first, second)),
                      high = vreinterpretq_s8_s32(vzip2q_s32(first, second));
#pragma GCC unroll 8
      for (size_t p = 0; p < kPairs; ++p) {
        sums[p][2 * v] = vusmmlaq_s32(sums[p][2 * v], x[p], low);
        sums[p][2 * v + 1] = vusmmlaq_s32(sums[p][2 * v + 1], x[p], high);
      }
    }
    w += kPanelRow;
  }
  for (size_t p = 0; p < kPairs; ++p) {
    int32x4_t of_first[kVectors], of_second[kVectors];
    for (size_t v = 0; v < kVectors; ++v) {
      const int64x2_t low = vreinterpretq_s64_s32(sums[p][2 * v]), high = vreinterpretq_s64_s32(sums[p][2 * v + 1]);
      of_first[v] = vreinterpretq_s32_s64(vzip1q_s64(low, high));
      of_second[v] = vreinterpretq_s32_s64(vzip2q_s64(low, high));
    }
    finish_int8(t, 2 * p, t.panel, of_first);
    if (static_cast<int64_t>(2 * p) + 1 < rows) finish_int8(t, 2 * p + 1, t.panel, of_second);
  }
}

void with_pairs(const QuantisedRows& x, const PanelBlock& b) {
  constexpr void (*kOf[kMostPairs])(const Place&, int64_t) = {int8_pairs<1>, int8_pairs<2>, int8_pairs<3>};
  constexpr int64_t kMost = 2 * kMostPairs;
  for (int64_t panel = 0; panel < panel_count(b.outputs); ++panel)
    for (int64_t row = 0; row < b.rows; row += kMost) {
      const int64_t rows = std::min(kMost, b.rows - row);
      kOf[divide_up(rows, 2) - 1](Place{x, b, row, panel}, rows);
    }
}

// One row or two have so few sums that the next would wait for the last: they take two panels.
void int8_block(const QuantisedRows& x, const PanelBlock& b) {
  constexpr void (*kOf[kMostRows])(const Place&) = {int8_tile<1, 1>, int8_tile<2, 1>, int8_tile<3, 1>, int8_tile<4, 1>};
  const int64_t panels = panel_count(b.outputs), step = b.rows <= 2 ? 2 : 1;
  for (int64_t panel = 0; panel < panels; panel += step) {
    if (step == 2 && panel + 1 < panels) {
      b.rows == 1 ? int8_tile<1, 2>({x, b, 0, panel}) : int8_tile<2, 2>({x, b, 0, panel});
      continue;
    }
    for (int64_t row = 0; row < b.rows; row += kMostRows)
      kOf[std::min<int64_t>(kMostRows, b.rows - row) - 1]({x, b, row, panel});
  }
}

void int4_block(const QuantisedRows& x, const PanelBlock& b) {
  constexpr void (*kOf[kMostRows])(const Place&) = {int4_tile<1>, int4_tile<2>, int4_tile<3>, int4_tile<4>};
  for (int64_t panel = 0; panel < panel_count(b.outputs); ++panel)
    for (int64_t row = 0; row < b.rows; row += kMostRows)
      kOf[std::min<int64_t>(kMostRows, b.rows - row) - 1]({x, b, row, panel});
}

}  // namespace

bool integer_block_arm(const QuantisedRows& x, const PanelBlock& block) {
  static const bool has_sdot = (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0,
                    has_i8mm = (getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0;
  if (!has_sdot) return false;
  if (block.weight.format == WeightFormat::int4) {
    int4_block(x, block);
  } else if (has_i8mm && block.rows >= kRowsForPairs) {
    with_pairs(x, block);
  } else {
    int8_block(x, block);
  }
  return true;
}

}  // namespace attune::cpu

#else

namespace attune::cpu {

bool integer_block_arm(const QuantisedRows&, const PanelBlock&) {
  return false;
}

}  // namespace attune::cpu

#endif
