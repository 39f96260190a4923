#include "attune/kernels/cpu/gemm/panel_linear_bfloat16.h"

#if defined(__aarch64__) && defined(__linux__) && (defined(__GNUC__) || defined(__clang__))

#include <arm_neon.h>
#include <sys/auxv.h>

#include <algorithm>

#define ATTUNE_BFDOT __attribute__((target("arch=armv8.2-a+bf16")))

namespace attune::cpu {
namespace {

constexpr size_t kVectors = 4;   // of a panel's row, each two inputs of four outputs
constexpr size_t kMostRows = 4;  // of a tile, whose sums stay in registers

struct Place {
  const Bfloat16Rows& x;
  const PanelBlock& block;
  int64_t row, panel;  // the first of the tile
};

// Two inputs, those in lane kLane of x, by a panel.
template <int kLane, size_t kRows>
ATTUNE_BFDOT inline void add_pair(const std::byte* w, const bfloat16x8_t (&x)[kRows],
                                  float32x4_t (&sums)[kRows][kVectors]) {
#pragma GCC unroll 8
  for (size_t v = 0; v < kVectors; ++v) {
    const bfloat16x8_t weights = vld1q_bf16(reinterpret_cast<const bfloat16_t*>(w + kLane * kPanelRow) + 8 * v);
#pragma GCC unroll 8
    for (size_t r = 0; r < kRows; ++r) sums[r][v] = vbfdotq_laneq_f32(sums[r][v], weights, x[r], kLane);
  }
}

template <size_t kRows>
ATTUNE_BFDOT void multiply(const Place& t) {
  const PanelBlock& b = t.block;
  const std::byte* w = b.weight.panel(t.panel);
  const auto* const x = reinterpret_cast<const bfloat16_t*>(t.x.numbers + t.row * t.x.stride);
  float32x4_t sums[kRows][kVectors];
#pragma GCC unroll 8
  for (size_t r = 0; r < kRows; ++r)
#pragma GCC unroll 8
    for (size_t v = 0; v < kVectors; ++v) sums[r][v] = vdupq_n_f32(0);
  const int64_t pairs = divide_up(b.weight.in, 2);
  for (int64_t k = 0; k < pairs; k += 4, w += 4 * kPanelRow) {
    bfloat16x8_t some[kRows];
#pragma GCC unroll 8
    for (size_t r = 0; r < kRows; ++r) some[r] = vld1q_bf16(x + static_cast<int64_t>(r) * t.x.stride + 2 * k);
    const int64_t left = pairs - k;
    add_pair<0>(w, some, sums);
    if (left > 1) add_pair<1>(w, some, sums);
    if (left > 2) add_pair<2>(w, some, sums);
    if (left > 3) add_pair<3>(w, some, sums);
  }
  const int64_t output = t.panel * kPanelOutputs, count = std::min(kPanelOutputs, b.outputs - output);
  for (size_t r = 0; r < kRows; ++r) {
    float whole[kPanelOutputs];
    for (size_t v = 0; v < kVectors; ++v) vst1q_f32(whole + 4 * v, sums[r][v]);
    float* const y = b.y + (t.row + static_cast<int64_t>(r)) * b.width + output;
    for (int64_t j = 0; j < count; ++j) y[j] = whole[j] + (b.bias != nullptr ? b.bias[output + j] : 0.0f);
  }
}

}  // namespace

bool has_bfloat16_block() {
  static const bool found = (getauxval(AT_HWCAP2) & HWCAP2_BF16) != 0;
  return found;
}

void bfloat16_block(const Bfloat16Rows& x, const PanelBlock& b) {
  constexpr void (*kOf[kMostRows])(const Place&) = {multiply<1>, multiply<2>, multiply<3>, multiply<4>};
  for (int64_t panel = 0; panel < panel_count(b.outputs); ++panel)
    for (int64_t row = 0; row < b.rows; row += kMostRows)
      kOf[std::min<int64_t>(kMostRows, b.rows - row) - 1]({x, b, row, panel});
}

}  // namespace attune::cpu

#endif
