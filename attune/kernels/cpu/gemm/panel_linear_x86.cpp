#include "attune/kernels/cpu/gemm/panel_linear_x86.h"

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))

#include <immintrin.h>

#include <algorithm>

#include "attune/kernels/cpu/gemm/panel_linear_amx.h"
#include "attune/kernels/cpu/gemm/panel_store_inl.h"

#define ATTUNE_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni")))

namespace attune::cpu {
namespace {

constexpr size_t kMostRows = 8;
constexpr size_t kAhead = 16 * kPanelRow;  // bytes, of a prefetch

// Panels of a tile of so many rows: the sums, one vector of each panel and one of x stay in registers.
constexpr size_t int8_panels(size_t rows) {
  return std::min<size_t>(8, 31 / (rows + 1));
}
constexpr size_t int4_panels(size_t rows) {  // which has sums of integers and of floats
  return std::clamp<size_t>(12 / rows, 1, 8);
}

struct Place {
  const QuantisedRows& x;
  const PanelBlock& block;
  int64_t row, panel;  // the first of the tile

  const uint8_t* numbers() const { return x.numbers + row * x.stride; }
  const float* scales() const { return x.scales + row * x.scales_of_row; }
  const int32_t* offsets() const { return x.offsets + row * x.scales_of_row; }
};

ATTUNE_AVX512 inline __m512i broadcast(const uint8_t* four) {
  int32_t value;
  __builtin_memcpy(&value, four, sizeof value);
  return _mm512_set1_epi32(value);
}

template <size_t kRows, size_t kPanels>
ATTUNE_AVX512 void int8_tile(const Place& t) {
  const std::byte* w = t.block.weight.panel(t.panel);
  const int64_t stride = panel_bytes(WeightFormat::int8, t.block.weight.in), of_x = t.x.stride;
  const int64_t quads = divide_up(t.block.weight.in, 4);
  __m512i sums[kRows][kPanels];
#pragma GCC unroll 8
  for (size_t p = 0; p < kPanels; ++p)
#pragma GCC unroll 8
    for (size_t r = 0; r < kRows; ++r) sums[r][p] = _mm512_loadu_si512(w + static_cast<int64_t>(p) * stride);
  const uint8_t* x = t.numbers();
  for (int64_t k = 0; k < quads; ++k, x += 4) {
    w += kPanelRow;
    __m512i weights[kPanels];
#pragma GCC unroll 8
    for (size_t p = 0; p < kPanels; ++p) {
      const std::byte* const at = w + static_cast<int64_t>(p) * stride;
      if constexpr (kRows <= 4) _mm_prefetch(reinterpret_cast<const char*>(at + kAhead), _MM_HINT_T0);
      weights[p] = _mm512_loadu_si512(at);
    }
#pragma GCC unroll 8
    for (size_t r = 0; r < kRows; ++r) {
      const __m512i four = broadcast(x + static_cast<int64_t>(r) * of_x);
#pragma GCC unroll 8
      for (size_t p = 0; p < kPanels; ++p) sums[r][p] = _mm512_dpbusd_epi32(sums[r][p], four, weights[p]);
    }
  }
  // Through memory, so that what follows, which is not unrolled, does not keep the sums there all the time.
  __m512i done[kRows][kPanels];
#pragma GCC unroll 8
  for (size_t r = 0; r < kRows; ++r)
#pragma GCC unroll 8
    for (size_t p = 0; p < kPanels; ++p) done[r][p] = sums[r][p];
  for (size_t p = 0; p < kPanels; ++p) {
    const int64_t panel = t.panel + static_cast<int64_t>(p);
    const __m512 of_panel = _mm512_loadu_ps(t.block.weight.scales_of(panel));
    for (size_t r = 0; r < kRows; ++r) {
      const __m512 scale = _mm512_mul_ps(of_panel, _mm512_set1_ps(t.scales()[r]));
      store_panel_row(t.block, t.row + static_cast<int64_t>(r), panel,
                      _mm512_mul_ps(_mm512_cvtepi32_ps(done[r][p]), scale));
    }
  }
}

template <size_t kRows, size_t kPanels>
ATTUNE_AVX512 void int4_tile(const Place& t) {
  const std::byte* w = t.block.weight.panel(t.panel);
  const int64_t stride = panel_bytes(WeightFormat::int4, t.block.weight.in), groups = t.x.scales_of_row;
  const __m512i low = _mm512_set1_epi8(15);
  __m512 values[kRows][kPanels];
#pragma GCC unroll 8
  for (size_t r = 0; r < kRows; ++r)
#pragma GCC unroll 8
    for (size_t p = 0; p < kPanels; ++p) values[r][p] = _mm512_setzero_ps();
  for (int64_t g = 0; g < groups; ++g, w += kGroupBytes) {
    __m512i sums[kRows][kPanels];
#pragma GCC unroll 8
    for (size_t r = 0; r < kRows; ++r)
#pragma GCC unroll 8
      for (size_t p = 0; p < kPanels; ++p)
        sums[r][p] = _mm512_set1_epi32(t.offsets()[static_cast<int64_t>(r) * groups + g]);
    const uint8_t* const x = t.numbers() + g * kGroupInputs;
#pragma GCC unroll 4
    for (int64_t i = 0; i < 4; ++i) {
#pragma GCC unroll 8
      for (size_t p = 0; p < kPanels; ++p) {
        const std::byte* const at = w + static_cast<int64_t>(p) * stride + i * kPanelRow;
        if constexpr (kRows <= 4) _mm_prefetch(reinterpret_cast<const char*>(at + kAhead), _MM_HINT_T0);
        const __m512i both = _mm512_loadu_si512(at);
        const __m512i first = _mm512_and_si512(both, low), second = _mm512_and_si512(_mm512_srli_epi16(both, 4), low);
#pragma GCC unroll 8
        for (size_t r = 0; r < kRows; ++r) {
          const uint8_t* const numbers = x + static_cast<int64_t>(r) * t.x.stride + i * 4;
          sums[r][p] = _mm512_dpbusd_epi32(sums[r][p], first, broadcast(numbers));
          sums[r][p] = _mm512_dpbusd_epi32(sums[r][p], second, broadcast(numbers + 16));
        }
      }
    }
#pragma GCC unroll 8
    for (size_t p = 0; p < kPanels; ++p) {
      const auto* const scales =
          reinterpret_cast<const __m256i*>(t.block.weight.scales_of(t.panel + static_cast<int64_t>(p))) + g;
      const __m512 of_panel =
          _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(scales)), 16));
#pragma GCC unroll 8
      for (size_t r = 0; r < kRows; ++r) {
        const __m512 scale = _mm512_mul_ps(of_panel, _mm512_set1_ps(t.scales()[static_cast<int64_t>(r) * groups + g]));
        values[r][p] = _mm512_add_ps(values[r][p], _mm512_mul_ps(_mm512_cvtepi32_ps(sums[r][p]), scale));
      }
    }
  }
#pragma GCC unroll 8
  for (size_t p = 0; p < kPanels; ++p)
#pragma GCC unroll 8
    for (size_t r = 0; r < kRows; ++r)
      store_panel_row(t.block, t.row + static_cast<int64_t>(r), t.panel + static_cast<int64_t>(p), values[r][p]);
}

template <WeightFormat kFormat, size_t kRows, size_t kPanels>
void tile(const Place& t, size_t panels) {
  if (panels < kPanels) {
    if constexpr (kPanels > 1) tile<kFormat, kRows, kPanels - 1>(t, panels);
    return;
  }
  if constexpr (kFormat == WeightFormat::int8) {
    int8_tile<kRows, kPanels>(t);
  } else {
    int4_tile<kRows, kPanels>(t);
  }
}

using TileFunction = void (*)(const Place&, size_t panels);

struct RowTile {
  TileFunction function;
  int64_t panels;
};

template <WeightFormat kFormat, size_t kRows>
RowTile tile_of_rows(size_t rows) {
  if constexpr (kRows < kMostRows)
    if (rows > kRows) return tile_of_rows<kFormat, kRows + 1>(rows);
  constexpr size_t kPanels = kFormat == WeightFormat::int8 ? int8_panels(kRows) : int4_panels(kRows);
  return {tile<kFormat, kRows, kPanels>, static_cast<int64_t>(kPanels)};
}

// As the tiles of float32: nearly the same number of rows in each, panels outside.
template <WeightFormat kFormat>
void block_in_tiles(const QuantisedRows& x, const PanelBlock& b) {
  const int64_t tiles = divide_up(b.rows, kMostRows), larger = b.rows % tiles, panels = panel_count(b.outputs);
  const auto fewer = static_cast<size_t>(b.rows / tiles);
  const RowTile tile[2] = {tile_of_rows<kFormat, 1>(fewer), tile_of_rows<kFormat, 1>(fewer + (larger > 0 ? 1 : 0))};
  for (int64_t p = 0; p < panels; p += tile[1].panels) {
    const auto count = static_cast<size_t>(std::min(tile[1].panels, panels - p));
    Place place{x, b, 0, p};
    for (int64_t i = 0; i < tiles; ++i) {
      tile[i < larger ? 1 : 0].function(place, count);
      place.row += static_cast<int64_t>(fewer) + (i < larger ? 1 : 0);
    }
  }
}

bool has_vnni() {
  static const bool found = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                            __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
  return found;
}

}  // namespace

bool integer_block_avx512(const QuantisedRows& x, const PanelBlock& block) {
  if (!has_vnni()) return false;
  if (block.weight.format == WeightFormat::int4) {
    block_in_tiles<WeightFormat::int4>(x, block);
  } else if (!int8_block_amx(x, block)) {
    block_in_tiles<WeightFormat::int8>(x, block);
  }
  return true;
}

}  // namespace attune::cpu

#else

namespace attune::cpu {

bool integer_block_avx512(const QuantisedRows&, const PanelBlock&) {
  return false;
}

}  // namespace attune::cpu

#endif
