#include "attune/kernels/cpu/gemm/panel_linear_bfloat16.h"

#if defined(__x86_64__) && defined(__linux__) && (defined(__GNUC__) || defined(__clang__))

#include <immintrin.h>

#include <algorithm>

#include "attune/kernels/cpu/gemm/amx_tiles.h"
#include "attune/kernels/cpu/gemm/bfloat16_tiles.h"
#include "attune/kernels/cpu/gemm/bfloat16_vectors.h"
#include "attune/kernels/cpu/gemm/panel_store_inl.h"
#include "attune/kernels/cpu/vector_width.h"

#define ATTUNE_AVX512_BF16 __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16")))
#define ATTUNE_AMX_BF16 __attribute__((target("avx512f,amx-tile,amx-bf16")))

namespace attune::cpu {
namespace {

constexpr int64_t kTileInputs = 32;

struct Place {
  const Bfloat16Rows& x;
  const PanelBlock& block;
  int64_t row, panel;  // the first of the tile
};

ATTUNE_AVX512_BF16 void finish(const float* sums, const PanelBlock& b, int64_t row, int64_t panel) {
  const int64_t rows = std::min(kTileRows, b.rows - row);
  for (int64_t r = 0; r < rows; ++r) store_panel_row(b, row + r, panel, _mm512_load_ps(sums + r * kPanelOutputs));
}

// Tiles 0 to 3 hold the sums of 32 rows by two panels, 4 and 5 the rows, 6 and 7 the panels.
template <bool kTwoOfRows, bool kTwoPanels>
ATTUNE_AMX_BF16 void multiply_tiles(const Place& t) {
  const PanelBlock& b = t.block;
  const std::byte* w_0 = b.weight.panel(t.panel);
  const std::byte* w_1 = kTwoPanels ? b.weight.panel(t.panel + 1) : w_0;
  const bfloat16* x_0 = t.x.numbers + t.row * t.x.stride;
  const bfloat16* x_1 = x_0 + kTileRows * t.x.stride;
  const int64_t of_x = t.x.stride * static_cast<int64_t>(sizeof(bfloat16));
  _tile_zero(0);
  if constexpr (kTwoPanels) _tile_zero(1);
  if constexpr (kTwoOfRows) _tile_zero(2);
  if constexpr (kTwoOfRows && kTwoPanels) _tile_zero(3);
  constexpr int64_t kTile = kTileRows * kTileBytes;
  for (int64_t k = 0; k < b.weight.in; k += kTileInputs, x_0 += kTileInputs, x_1 += kTileInputs) {
    if constexpr (!kTwoOfRows) {  // few rows: the weights come from memory
      for (int64_t line = 0; line < kTile; line += kPanelRow) {
        _mm_prefetch(reinterpret_cast<const char*>(w_0 + 2 * kTile + line), _MM_HINT_T0);
        if constexpr (kTwoPanels) _mm_prefetch(reinterpret_cast<const char*>(w_1 + 2 * kTile + line), _MM_HINT_T0);
      }
    }
    _tile_loadd(6, w_0, kTileBytes);
    _tile_loadd(4, x_0, of_x);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (kTwoPanels) {
      _tile_loadd(7, w_1, kTileBytes);
      _tile_dpbf16ps(1, 4, 7);
    }
    if constexpr (kTwoOfRows) {
      _tile_loadd(5, x_1, of_x);
      _tile_dpbf16ps(2, 5, 6);
    }
    if constexpr (kTwoOfRows && kTwoPanels) _tile_dpbf16ps(3, 5, 7);
    w_0 += kTile;
    w_1 += kTile;
  }
  alignas(64) float sums[4][kTileRows * kPanelOutputs];
  _tile_stored(0, sums[0], kTileBytes);
  if constexpr (kTwoPanels) _tile_stored(1, sums[1], kTileBytes);
  if constexpr (kTwoOfRows) _tile_stored(2, sums[2], kTileBytes);
  if constexpr (kTwoOfRows && kTwoPanels) _tile_stored(3, sums[3], kTileBytes);
  finish(sums[0], b, t.row, t.panel);
  if constexpr (kTwoPanels) finish(sums[1], b, t.row, t.panel + 1);
  if constexpr (kTwoOfRows) finish(sums[2], b, t.row + kTileRows, t.panel);
  if constexpr (kTwoOfRows && kTwoPanels) finish(sums[3], b, t.row + kTileRows, t.panel + 1);
}

ATTUNE_AMX_BF16 void with_tiles(const Bfloat16Rows& x, const PanelBlock& b) {
  _tile_loadconfig(&kWholeTiles);
  const int64_t panels = panel_count(b.outputs);
  for (int64_t panel = 0; panel < panels; panel += 2) {
    for (int64_t row = 0; row < b.rows; row += 2 * kTileRows) {
      const Place place{x, b, row, panel};
      if (row + kTileRows < b.rows) {
        panel + 1 < panels ? multiply_tiles<true, true>(place) : multiply_tiles<true, false>(place);
      } else {
        panel + 1 < panels ? multiply_tiles<false, true>(place) : multiply_tiles<false, false>(place);
      }
    }
  }
  _tile_release();
}

}  // namespace

bool has_bfloat16_block() {
  return has_avx512_bfloat16() && has_wide_vectors();
}

void bfloat16_block(const Bfloat16Rows& x, const PanelBlock& block) {
  if (block.weight.in % kTileInputs == 0 && has_amx_bfloat16()) return with_tiles(x, block);
  bfloat16_vectors({x.numbers, x.stride}, block);
}

}  // namespace attune::cpu

#elif !defined(__aarch64__) || !defined(__linux__)  // for these, panel_linear_bfloat16_arm.cpp

#include <stdexcept>

namespace attune::cpu {

bool has_bfloat16_block() {
  return false;
}

void bfloat16_block(const Bfloat16Rows&, const PanelBlock&) {
  throw std::logic_error("a product of bfloat16 on a processor without it");
}

}  // namespace attune::cpu

#endif
