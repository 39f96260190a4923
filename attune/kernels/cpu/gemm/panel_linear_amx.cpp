#include "attune/kernels/cpu/gemm/panel_linear_amx.h"

#if defined(__x86_64__) && defined(__linux__) && (defined(__GNUC__) || defined(__clang__))

#include <immintrin.h>

#include <algorithm>

#include "attune/kernels/cpu/gemm/amx_tiles.h"
#include "attune/kernels/cpu/gemm/panel_store_inl.h"

#define ATTUNE_AMX __attribute__((target("avx512f,amx-tile,amx-int8")))

namespace attune::cpu {
namespace {

constexpr int64_t kFewestRows = 12;

bool has_tiles() {
  constexpr unsigned kInt8 = 1u << 25;
  static const bool found = has_amx(kInt8);
  return found;
}

ATTUNE_AMX void finish(const int32_t* sums, const QuantisedRows& x, const PanelBlock& b, int64_t row, int64_t panel) {
  const __m512 of_panel = _mm512_loadu_ps(b.weight.scales_of(panel));
  const int64_t rows = std::min(kTileRows, b.rows - row);
  for (int64_t r = 0; r < rows; ++r) {
    const __m512 scale = _mm512_mul_ps(of_panel, _mm512_set1_ps(x.scales[row + r]));
    const __m512 value = _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_load_si512(sums + r * kPanelOutputs)), scale);
    store_panel_row(b, row + r, panel, value);
  }
}

// Tiles 0 to 3 hold the sums of 32 rows by two panels, 4 and 5 the rows, 6 and 7 the panels.
template <bool kTwoOfRows, bool kTwoPanels>
ATTUNE_AMX void multiply(const QuantisedRows& x, const PanelBlock& b, int64_t row, int64_t panel) {
  const std::byte* const w_0 = b.weight.panel(panel);
  const std::byte* const w_1 = kTwoPanels ? b.weight.panel(panel + 1) : w_0;
  const uint8_t* const x_0 = x.numbers + row * x.stride;
  const uint8_t* const x_1 = x_0 + kTileRows * x.stride;
  const int64_t tiles = divide_up(b.weight.in, kTileBytes);
  _tile_loadd(0, w_0, 0);  // a step of 0: every row begins with the same sums
  if constexpr (kTwoPanels) _tile_loadd(1, w_1, 0);
  if constexpr (kTwoOfRows) _tile_loadd(2, w_0, 0);
  if constexpr (kTwoOfRows && kTwoPanels) _tile_loadd(3, w_1, 0);
  for (int64_t k = 0; k < tiles; ++k) {
    const int64_t at = kPanelRow + k * kTileRows * kTileBytes;
    _tile_loadd(6, w_0 + at, kTileBytes);
    _tile_loadd(4, x_0 + k * kTileBytes, x.stride);
    _tile_dpbusd(0, 4, 6);
    if constexpr (kTwoPanels) {
      _tile_loadd(7, w_1 + at, kTileBytes);
      _tile_dpbusd(1, 4, 7);
    }
    if constexpr (kTwoOfRows) {
      _tile_loadd(5, x_1 + k * kTileBytes, x.stride);
      _tile_dpbusd(2, 5, 6);
    }
    if constexpr (kTwoOfRows && kTwoPanels) _tile_dpbusd(3, 5, 7);
  }
  alignas(64) int32_t sums[4][kTileRows * kPanelOutputs];
  _tile_stored(0, sums[0], kTileBytes);
  if constexpr (kTwoPanels) _tile_stored(1, sums[1], kTileBytes);
  if constexpr (kTwoOfRows) _tile_stored(2, sums[2], kTileBytes);
  if constexpr (kTwoOfRows && kTwoPanels) _tile_stored(3, sums[3], kTileBytes);
  finish(sums[0], x, b, row, panel);
  if constexpr (kTwoPanels) finish(sums[1], x, b, row, panel + 1);
  if constexpr (kTwoOfRows) finish(sums[2], x, b, row + kTileRows, panel);
  if constexpr (kTwoOfRows && kTwoPanels) finish(sums[3], x, b, row + kTileRows, panel + 1);
}

ATTUNE_AMX void multiply_all(const QuantisedRows& x, const PanelBlock& b) {
  _tile_loadconfig(&kWholeTiles);
  const int64_t panels = panel_count(b.outputs);
  for (int64_t panel = 0; panel < panels; panel += 2) {
    const bool two_panels = panel + 1 < panels;
    for (int64_t row = 0; row < b.rows; row += 2 * kTileRows) {
      const bool two_of_rows = row + kTileRows < b.rows;
      if (two_of_rows) {
        two_panels ? multiply<true, true>(x, b, row, panel) : multiply<true, false>(x, b, row, panel);
      } else {
        two_panels ? multiply<false, true>(x, b, row, panel) : multiply<false, false>(x, b, row, panel);
      }
    }
  }
  _tile_release();
}

}  // namespace

bool int8_block_amx(const QuantisedRows& x, const PanelBlock& block) {
  const bool whole = divide_up(block.weight.in, 4) % kTileRows == 0;
  if (!whole || block.rows < kFewestRows || !has_tiles()) return false;
  multiply_all(x, block);
  return true;
}

}  // namespace attune::cpu

#else

namespace attune::cpu {

bool int8_block_amx(const QuantisedRows&, const PanelBlock&) {
  return false;
}

}  // namespace attune::cpu

#endif
