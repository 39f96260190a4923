#pragma once
// Products of tiles of bfloat16, with AMX or in the vectors of AVX-512. x86-64 on Linux alone.

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

#include "attune/kernels/cpu/gemm/amx_tiles.h"
#include "attune/kernels/cpu/gemm/bfloat16_tiles.h"
#include "attune/tensor/dtype.h"

#define ATTUNE_BFLOAT16_TILES __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16,amx-tile,amx-bf16")))

namespace attune::cpu {

constexpr int64_t kTileTerms = kTileBytes / static_cast<int64_t>(sizeof(bfloat16));  // of each sum, in a tile's row
constexpr int64_t kTileNumbers = kTileRows * kTileTerms;

/// A mask whose lowest `count` bits are set.
inline __mmask32 first_bits(int64_t count) {
  return static_cast<__mmask32>((uint64_t{1} << std::clamp<int64_t>(count, 0, 32)) - 1);
}

/// Indices that take the numbers of two lists of kCount in turn: one of the first, one of the second, and so on.
template <uint16_t kCount>
alignas(64) constexpr std::array<uint16_t, 2 * kCount> kInTurn = [] {
  std::array<uint16_t, 2 * kCount> places{};
  for (uint16_t i = 0; i < kCount; ++i) {
    places[2 * i] = i;
    places[2 * i + 1] = static_cast<uint16_t>(kCount + i);
  }
  return places;
}();

/// Stores the numbers whose bits in `there` are set, rounded where they become bfloat16.
ATTUNE_BFLOAT16_TILES inline void store(float* to, __mmask16 there, __m512 x) {
  _mm512_mask_storeu_ps(to, there, x);
}
ATTUNE_BFLOAT16_TILES inline void store(bfloat16* to, __mmask16 there, __m512 x) {
  const __m256bh rounded = _mm512_cvtneps_pbh(x);
  __m256i bits;
  std::memcpy(&bits, &rounded, sizeof(bits));
  _mm256_mask_storeu_epi16(to, there, bits);
}

ATTUNE_BFLOAT16_TILES inline void store_tile(const __m512i (&rows)[16], bfloat16* to) {
  for (int i = 0; i < 16; ++i) _mm512_store_si512(to + i * kTileTerms, rows[i]);
}

/// Turns 16 rows of 16 numbers of 32 bits: pairs of terms of 16 columns become 32 terms of 16 rows, and the other way
/// round.
ATTUNE_BFLOAT16_TILES inline void turn(__m512i (&r)[16]) {
  __m512i t[16];
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
  }
  for (int i = 0; i < 16; i += 4) {
    r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
  // r[4 g + j] has, of rows 4 g to 4 g + 3, the columns j, 4 + j, 8 + j and 12 + j.
  for (int j = 0; j < 4; ++j) {
    t[j] = _mm512_shuffle_i32x4(r[j], r[4 + j], 0x88);
    t[4 + j] = _mm512_shuffle_i32x4(r[j], r[4 + j], 0xdd);
    t[8 + j] = _mm512_shuffle_i32x4(r[8 + j], r[12 + j], 0x88);
    t[12 + j] = _mm512_shuffle_i32x4(r[8 + j], r[12 + j], 0xdd);
  }
  for (int j = 0; j < 4; ++j) {
    r[j] = _mm512_shuffle_i32x4(t[j], t[8 + j], 0x88);
    r[8 + j] = _mm512_shuffle_i32x4(t[j], t[8 + j], 0xdd);
    r[4 + j] = _mm512_shuffle_i32x4(t[4 + j], t[12 + j], 0x88);
    r[12 + j] = _mm512_shuffle_i32x4(t[4 + j], t[12 + j], 0xdd);
  }
}

constexpr int64_t kRowsOfSums = 8;  // at a time: their sums for 32 columns fill 16 registers

/// The same two terms in all sixteen lanes.
ATTUNE_BFLOAT16_TILES inline __m512bh pair_of_terms(const bfloat16* two) {
  int32_t both;
  std::memcpy(&both, two, sizeof(both));
  return (__m512bh)_mm512_set1_epi32(both);
}

// c = or += a b of kRowsOfSums rows of a tile by kVectors tiles of columns.
template <int64_t kVectors>
ATTUNE_BFLOAT16_TILES inline void multiply_rows(const bfloat16* a, const bfloat16* b, int64_t tiles, bool accumulate,
                                                float* c, int64_t width) {
  const int64_t half = tiles * kTileNumbers;
  __m512 sums[kRowsOfSums][kVectors];
#pragma GCC unroll 8
  for (int64_t r = 0; r < kRowsOfSums; ++r)
#pragma GCC unroll 2
    for (int64_t v = 0; v < kVectors; ++v)
      sums[r][v] = accumulate ? _mm512_loadu_ps(c + r * width + v * kTileRows) : _mm512_setzero_ps();
  for (int64_t tile = 0; tile < half; tile += kTileNumbers) {
#pragma GCC unroll 4
    for (int64_t term = 0; term < kTileTerms; term += 2) {
      __m512bh columns[kVectors];
#pragma GCC unroll 2
      for (int64_t v = 0; v < kVectors; ++v)
        columns[v] = (__m512bh)_mm512_load_si512(b + v * half + tile + term * kTileRows);
#pragma GCC unroll 8
      for (int64_t r = 0; r < kRowsOfSums; ++r) {
        const __m512bh terms = pair_of_terms(a + tile + r * kTileTerms + term);
#pragma GCC unroll 2
        for (int64_t v = 0; v < kVectors; ++v) sums[r][v] = _mm512_dpbf16_ps(sums[r][v], terms, columns[v]);
      }
    }
  }
#pragma GCC unroll 8
  for (int64_t r = 0; r < kRowsOfSums; ++r)
#pragma GCC unroll 2
    for (int64_t v = 0; v < kVectors; ++v) _mm512_storeu_ps(c + r * width + v * kTileRows, sums[r][v]);
}

// multiply_tiles() without AMX.
template <bool kTwoOfRows, bool kTwoOfColumns>
ATTUNE_BFLOAT16_TILES void multiply_in_vectors(const bfloat16* a, const bfloat16* b, int64_t tiles, bool accumulate,
                                               float* c, int64_t width) {
  for (int64_t i = 0; i < (kTwoOfRows ? 2 : 1); ++i, a += tiles * kTileNumbers)
    for (int64_t r = 0; r < kTileRows; r += kRowsOfSums, c += kRowsOfSums * width)
      multiply_rows<kTwoOfColumns ? 2 : 1>(a + r * kTileTerms, b, tiles, accumulate, c, width);
}

/// c = or += a b of one or two tiles of rows by one or two of columns, with `tiles` tiles of terms; rows of c are
/// `width` apart. The fence keeps stores to a and b before the loads: GCC 12 does not know that the load of a tile
/// reads memory.
template <bool kTwoOfRows, bool kTwoOfColumns>
ATTUNE_BFLOAT16_TILES inline void multiply_tiles(const bfloat16* a, const bfloat16* b, int64_t tiles, bool accumulate,
                                                 float* c, int64_t width) {
  if (!has_amx_bfloat16()) return multiply_in_vectors<kTwoOfRows, kTwoOfColumns>(a, b, tiles, accumulate, c, width);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  const int64_t bytes = width * static_cast<int64_t>(sizeof(float)), half = tiles * kTileNumbers;
  float* const below = c + kTileRows * width;
  if (accumulate) {
    _tile_loadd(0, c, bytes);
    if constexpr (kTwoOfColumns) _tile_loadd(1, c + kTileRows, bytes);
    if constexpr (kTwoOfRows) _tile_loadd(2, below, bytes);
    if constexpr (kTwoOfRows && kTwoOfColumns) _tile_loadd(3, below + kTileRows, bytes);
  } else {
    _tile_zero(0);
    if constexpr (kTwoOfColumns) _tile_zero(1);
    if constexpr (kTwoOfRows) _tile_zero(2);
    if constexpr (kTwoOfRows && kTwoOfColumns) _tile_zero(3);
  }
  for (int64_t k = 0; k < half; k += kTileNumbers) {
    _tile_loadd(4, a + k, kTileBytes);
    _tile_loadd(6, b + k, kTileBytes);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (kTwoOfColumns) {
      _tile_loadd(7, b + half + k, kTileBytes);
      _tile_dpbf16ps(1, 4, 7);
    }
    if constexpr (kTwoOfRows) {
      _tile_loadd(5, a + half + k, kTileBytes);
      _tile_dpbf16ps(2, 5, 6);
    }
    if constexpr (kTwoOfRows && kTwoOfColumns) _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, c, bytes);
  if constexpr (kTwoOfColumns) _tile_stored(1, c + kTileRows, bytes);
  if constexpr (kTwoOfRows) _tile_stored(2, below, bytes);
  if constexpr (kTwoOfRows && kTwoOfColumns) _tile_stored(3, below + kTileRows, bytes);
}

}  // namespace attune::cpu
