#include "attune/kernels/cpu/gemm/bfloat16_tile_product.h"

#if defined(__x86_64__) && defined(__linux__) && (defined(__GNUC__) || defined(__clang__))

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include "attune/kernels/cpu/gemm/bfloat16_tiles_inl.h"
#include "attune/kernels/gemm/panels.h"

namespace attune::cpu {
namespace {

constexpr int64_t kMostTiles = kMostTileWidth / kTileTerms * (kMostTileRows / kTileRows);  // of a or b

ATTUNE_BFLOAT16_TILES inline __m512i rounded(__m512 low, __m512 high) {
  const __m512bh both = _mm512_cvtne2ps_pbh(high, low);
  __m512i bits;
  std::memcpy(&bits, &both, sizeof(bits));
  return bits;
}

// Row i of the result has the numbers 2i and 2i + 1 of 16 columns side by side, of `terms` rows that are `row` apart.
ATTUNE_BFLOAT16_TILES inline void load_pairs(const float* from, int64_t row, int64_t terms, __m512i (&pairs)[16]) {
  const __m512i places = _mm512_load_si512(kInTurn<16>.data());
  for (int64_t i = 0; i < 16; ++i) {
    const float* const at = from + 2 * i * row;
    const __m512 even = 2 * i < terms ? _mm512_loadu_ps(at) : _mm512_setzero_ps();
    const __m512 odd = 2 * i + 1 < terms ? _mm512_loadu_ps(at + row) : _mm512_setzero_ps();
    pairs[i] = _mm512_permutexvar_epi16(places, rounded(even, odd));
  }
}

// Row i has 32 terms of row i of the product, of `terms` that are there.
ATTUNE_BFLOAT16_TILES inline void load_rows(const float* from, int64_t row, int64_t rows, int64_t terms,
                                            __m512i (&values)[16]) {
  const __mmask32 there = first_bits(terms);
  const auto low = static_cast<__mmask16>(there), high = static_cast<__mmask16>(there >> 16);
  for (int64_t i = 0; i < 16; ++i) {
    const float* const at = from + i * row;
    values[i] = i < rows ? rounded(_mm512_maskz_loadu_ps(low, at), _mm512_maskz_loadu_ps(high, at + 16))
                         : _mm512_setzero_si512();
  }
}

// Tiles of a by rows, of b by columns, each with its terms one after another.
ATTUNE_BFLOAT16_TILES void lay_out(const TileProduct& p, int64_t tiles, bfloat16* a, bfloat16* b) {
  __m512i values[16];
  for (int64_t i = 0; i < p.m; i += kTileRows) {
    for (int64_t t = 0; t < tiles; ++t, a += kTileNumbers) {
      const int64_t term = t * kTileTerms;
      const float* const from = p.a + i * p.a_row + term * p.a_column;
      if (p.a_column == 1) {
        load_rows(from, p.a_row, p.m - i, p.k - term, values);
      } else {
        load_pairs(from, p.a_column, p.k - term, values);
        turn(values);
      }
      store_tile(values, a);
    }
  }
  for (int64_t j = 0; j < p.n; j += kTileRows) {
    for (int64_t t = 0; t < tiles; ++t, b += kTileNumbers) {
      const int64_t term = t * kTileTerms;
      load_pairs(p.b + term * p.b_row + j, p.b_row, p.k - term, values);
      store_tile(values, b);
    }
  }
}

}  // namespace

void bfloat16_tile_product(const TileProduct& p) {
  alignas(64) std::array<std::byte, kMostTiles * kTileNumbers * sizeof(bfloat16)> of_a, of_b;
  auto* const a = reinterpret_cast<bfloat16*>(of_a.data());
  auto* const b = reinterpret_cast<bfloat16*>(of_b.data());
  const int64_t tiles = divide_up(p.k, kTileTerms), strip = tiles * kTileNumbers;
  lay_out(p, tiles, a, b);
  for (int64_t i = 0; i < p.m; i += 2 * kTileRows) {
    const bool two_of_rows = i + kTileRows < p.m;
    for (int64_t j = 0; j < p.n; j += 2 * kTileRows) {
      const bool two_of_columns = j + kTileRows < p.n;
      const bfloat16* const rows = a + i / kTileRows * strip;
      const bfloat16* const columns = b + j / kTileRows * strip;
      float* const c = p.c + i * p.n + j;
      if (two_of_rows) {
        two_of_columns ? multiply_tiles<true, true>(rows, columns, tiles, p.accumulate, c, p.n)
                       : multiply_tiles<true, false>(rows, columns, tiles, p.accumulate, c, p.n);
      } else {
        two_of_columns ? multiply_tiles<false, true>(rows, columns, tiles, p.accumulate, c, p.n)
                       : multiply_tiles<false, false>(rows, columns, tiles, p.accumulate, c, p.n);
      }
    }
  }
}

}  // namespace attune::cpu

#else

#include <stdexcept>

namespace attune::cpu {

void bfloat16_tile_product(const TileProduct&) {
  throw std::logic_error("a product of AVX512-BF16 on a processor without it");
}

}  // namespace attune::cpu

#endif
