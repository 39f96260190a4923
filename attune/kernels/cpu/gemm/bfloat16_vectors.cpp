#include "attune/kernels/cpu/gemm/bfloat16_vectors.h"

#if defined(__x86_64__) && defined(__linux__) && (defined(__GNUC__) || defined(__clang__))

#include <immintrin.h>

#include <algorithm>
#include <array>

#include "attune/kernels/cpu/gemm/bfloat16_tiles_inl.h"

namespace attune::cpu {
namespace {

constexpr int64_t kAhead = 16 * kPanelRow;  // bytes, of a prefetch
constexpr int64_t kMostRows = 8;            // of a tile: the sums of 8 rows by 3 panels fill 24 of 32 registers
constexpr int64_t kFewRows = 4;             // by 4 panels

constexpr int64_t panels_of_tile(int64_t rows) {
  return rows <= kFewRows ? 4 : 3;
}

// Some rows by some panels.
struct Place {
  const bfloat16* x;
  int64_t x_step;  // from a row to the next, or from a pair to the next
  const std::byte* panels;
  int64_t panel_bytes, pairs;
  const float* bias;  // or null
  int64_t outputs;
  float* y;
  int64_t width;
  bool onto;
  RoundedRows rounded;  // in place of y, unless it has no numbers
};

// Where the numbers of x stand: row by row, or pair by pair.
enum class Order { rows, pairs };

template <Order kOrder, int64_t kRows, int64_t kPanels>
ATTUNE_BFLOAT16_TILES void multiply(const Place& t) {
  const int64_t x_row = kOrder == Order::rows ? t.x_step : 2, x_pair = kOrder == Order::rows ? 2 : t.x_step;
  __m512 sums[kRows][kPanels];
#pragma GCC unroll 8
  for (int64_t r = 0; r < kRows; ++r)
#pragma GCC unroll 4
    for (int64_t p = 0; p < kPanels; ++p) sums[r][p] = _mm512_setzero_ps();
  for (int64_t r = 0; r < kRows; ++r) {
    for (int64_t p = 0; p < kPanels; ++p) {
      const int64_t output = p * kPanelOutputs;
      const void* const to = t.rounded.numbers != nullptr
                                 ? static_cast<const void*>(t.rounded.numbers + r * t.rounded.width + output)
                                 : t.y + r * t.width + output;
      _mm_prefetch(static_cast<const char*>(to), _MM_HINT_T0);
    }
  }
  const bfloat16* x = t.x;
  const std::byte* w = t.panels;
  for (int64_t i = 0; i < t.pairs; ++i, x += x_pair, w += kPanelRow) {
    __m512bh weights[kPanels];
#pragma GCC unroll 4
    for (int64_t p = 0; p < kPanels; ++p) {
      const std::byte* const at = w + p * t.panel_bytes;
      if constexpr (kRows <= kFewRows) _mm_prefetch(reinterpret_cast<const char*>(at + kAhead), _MM_HINT_T0);
      weights[p] = (__m512bh)_mm512_loadu_si512(at);
    }
#pragma GCC unroll 8
    for (int64_t r = 0; r < kRows; ++r) {
      const __m512bh pair = pair_of_terms(x + r * x_row);
#pragma GCC unroll 4
      for (int64_t p = 0; p < kPanels; ++p) sums[r][p] = _mm512_dpbf16_ps(sums[r][p], pair, weights[p]);
    }
  }
#pragma GCC unroll 4
  for (int64_t p = 0; p < kPanels; ++p) {
    const auto there = static_cast<__mmask16>(first_bits(t.outputs - p * kPanelOutputs));
    const __m512 bias =
        t.bias != nullptr ? _mm512_maskz_loadu_ps(there, t.bias + p * kPanelOutputs) : _mm512_setzero_ps();
    if (t.rounded.numbers != nullptr) {
#pragma GCC unroll 8
      for (int64_t r = 0; r < kRows; ++r) {
        __m512 sum = _mm512_add_ps(sums[r][p], bias);
        if (t.rounded.relu) sum = _mm512_max_ps(_mm512_setzero_ps(), sum);  // the sum where it is not a number
        store(t.rounded.numbers + r * t.rounded.width + p * kPanelOutputs, there, sum);
      }
      continue;
    }
#pragma GCC unroll 8
    for (int64_t r = 0; r < kRows; ++r) {
      float* const y = t.y + r * t.width + p * kPanelOutputs;
      const __m512 sum = t.onto ? _mm512_add_ps(_mm512_maskz_loadu_ps(there, y), sums[r][p]) : sums[r][p];
      _mm512_mask_storeu_ps(y, there, _mm512_add_ps(sum, bias));
    }
  }
}

using Multiply = void (*)(const Place&);

template <Order kOrder, int64_t kRows, int64_t kPanels>
constexpr Multiply of_tile() {
  if constexpr (kPanels <= panels_of_tile(kRows)) return multiply<kOrder, kRows, kPanels>;
  return nullptr;
}

template <Order kOrder, int64_t kRows>
Multiply of_rows(int64_t rows, int64_t panels) {
  static constexpr std::array<Multiply, 4> kOf = {of_tile<kOrder, kRows, 1>(), of_tile<kOrder, kRows, 2>(),
                                                  of_tile<kOrder, kRows, 3>(), of_tile<kOrder, kRows, 4>()};
  if constexpr (kRows < kMostRows)
    if (rows > kRows) return of_rows<kOrder, kRows + 1>(rows, panels);
  return kOf[static_cast<size_t>(panels - 1)];
}

// Panels outside, so that they stay in the cache for all rows.
template <Order kOrder>
void multiply_block(const PairRows& x, const PanelBlock& b, bool onto, const RoundedRows& to) {
  const int64_t panels = panel_count(b.outputs), tiles = divide_up(b.rows, kMostRows);
  const int64_t rows = b.rows / tiles, larger = b.rows % tiles;  // tiles of nearly the same size
  const int64_t step = panels_of_tile(rows + (larger > 0 ? 1 : 0));
  for (int64_t panel = 0; panel < panels; panel += step) {
    const int64_t count = std::min(step, panels - panel), output = panel * kPanelOutputs;
    Place place{.x = x.numbers,
                .x_step = kOrder == Order::rows ? x.row : x.pair,
                .panels = b.weight.panel(panel),
                .panel_bytes = panel_bytes(WeightFormat::bfloat16, b.weight.in),
                .pairs = divide_up(b.weight.in, 2),
                .bias = b.bias != nullptr ? b.bias + output : nullptr,
                .outputs = b.outputs - output,
                .y = b.y != nullptr ? b.y + output : nullptr,
                .width = b.width,
                .onto = onto,
                .rounded = {to.numbers != nullptr ? to.numbers + output : nullptr, to.width, to.relu}};
    for (int64_t i = 0; i < tiles; ++i) {
      const int64_t of_tile = rows + (i < larger ? 1 : 0);
      of_rows<kOrder, 1>(of_tile, count)(place);
      place.x += of_tile * x.row;
      if (b.y != nullptr) place.y += of_tile * b.width;
      if (to.numbers != nullptr) place.rounded.numbers += of_tile * to.width;
    }
  }
}

}  // namespace

void bfloat16_vectors(const PairRows& x, const PanelBlock& block, bool onto) {
  x.pair == 2 ? multiply_block<Order::rows>(x, block, onto, {}) : multiply_block<Order::pairs>(x, block, onto, {});
}
void bfloat16_vectors(const PairRows& x, const PanelBlock& block, const RoundedRows& to) {
  x.pair == 2 ? multiply_block<Order::rows>(x, block, false, to) : multiply_block<Order::pairs>(x, block, false, to);
}

ATTUNE_BFLOAT16_TILES void pair_rows(const bfloat16* first, const bfloat16* second, int64_t count, bfloat16* to,
                                     int64_t step, int64_t ahead) {
  const __m512i in_turn = _mm512_load_si512(kInTurn<16>.data());
  for (int64_t i = 0; i < count; i += kPanelOutputs, to += step) {
    const auto there = static_cast<__mmask16>(first_bits(count - i));
    _mm_prefetch(reinterpret_cast<const char*>(first + i + ahead), _MM_HINT_T0);
    if (second != nullptr) _mm_prefetch(reinterpret_cast<const char*>(second + i + ahead), _MM_HINT_T0);
    const __m256i low = _mm256_maskz_loadu_epi16(there, first + i);
    const __m256i high = second != nullptr ? _mm256_maskz_loadu_epi16(there, second + i) : _mm256_setzero_si256();
    const __m512i both = _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
    _mm512_storeu_si512(to, _mm512_permutexvar_epi16(in_turn, both));
  }
}

}  // namespace attune::cpu

#else

#include <stdexcept>

namespace attune::cpu {

void bfloat16_vectors(const PairRows&, const PanelBlock&, bool) {
  throw std::logic_error("a product of AVX512-BF16 on a processor without it");
}
void bfloat16_vectors(const PairRows& x, const PanelBlock& block, const RoundedRows&) {
  bfloat16_vectors(x, block);
}

void pair_rows(const bfloat16*, const bfloat16*, int64_t, bfloat16*, int64_t, int64_t) {
  throw std::logic_error("rows for a product of AVX512-BF16 on a processor without it");
}

}  // namespace attune::cpu

#endif
