#include "attune/kernels/cpu/gemm/amx_matmul.h"

#if defined(__x86_64__) && defined(__linux__) && (defined(__GNUC__) || defined(__clang__))

#include <immintrin.h>

#include <algorithm>
#include <cstddef>
#include <memory>

#include "attune/base/parallel.h"
#include "attune/kernels/cpu/activation_rows.h"
#include "attune/kernels/cpu/gemm/bfloat16_tiles.h"
#include "attune/kernels/cpu/gemm/bfloat16_tiles_inl.h"
#include "attune/kernels/gemm/panels.h"
#include "attune/tensor/buffer.h"

namespace attune::cpu {
namespace {

constexpr int64_t kStrip = 2 * kTileRows;         // rows and columns of c that are formed at a time, in four tiles
constexpr int64_t kBlockTerms = 8 * kTileTerms;   // at a time: strips of both factors are 32 KiB, in the first cache
constexpr int64_t kMostAtOnce = 16 * kTileTerms;  // sums of so many terms take one block
constexpr int64_t kStripNumbers = kStrip * kStrip;
constexpr int64_t kStripsOfRows = 8;  // that are laid out at a time

// A block of terms of a matrix, laid out in strips of 32 rows or columns of c, strip after strip. Each has two columns
// of tiles, one behind the other. What is missing at the ends is zero.
struct LaidOut {
  bfloat16* data;
  int64_t tiles;  // of terms

  bfloat16* strip(int64_t index) const { return data + 2 * index * tiles * kTileNumbers; }
};

// A matrix: `terms` terms for each of `count` rows or columns of c.
struct Source {
  const bfloat16* data;
  int64_t terms, count;
  bool by_terms;  // stored as [terms, count], else as [count, terms]
};

// What a tile holds as the second factor of a product: row i has the terms 2i and 2i + 1 of 16 columns, both terms of a
// column side by side. `low` is of 16 columns, `high` of the next.
ATTUNE_BFLOAT16_TILES inline void load_pairs(const Source& from, int64_t term, int64_t column, __m512i (&low)[16],
                                             __m512i (&high)[16]) {
  const __m512i low_places = _mm512_load_si512(kInTurn<32>.data());
  const __m512i high_places = _mm512_load_si512(kInTurn<32>.data() + 32);
  const __mmask32 there = first_bits(from.count - column);
  const bfloat16* const data = from.data + term * from.count + column;
  for (int64_t i = 0; i < 16; ++i) {
    const bfloat16* const at = data + 2 * i * from.count;
    const __m512i even = _mm512_maskz_loadu_epi16(term + 2 * i < from.terms ? there : 0, at);
    const __m512i odd = _mm512_maskz_loadu_epi16(term + 2 * i + 1 < from.terms ? there : 0, at + from.count);
    low[i] = _mm512_permutex2var_epi16(even, low_places, odd);
    high[i] = _mm512_permutex2var_epi16(even, high_places, odd);
  }
}

// What a tile holds as the first factor: row i has 32 terms of row i of c.
ATTUNE_BFLOAT16_TILES inline void load_rows(const Source& from, int64_t term, int64_t row, __m512i (&low)[16],
                                            __m512i (&high)[16]) {
  const __mmask32 there = first_bits(from.terms - term);
  const bfloat16* const data = from.data + row * from.terms + term;
  for (int64_t i = 0; i < 16; ++i) {
    low[i] = _mm512_maskz_loadu_epi16(row + i < from.count ? there : 0, data + i * from.terms);
    high[i] = _mm512_maskz_loadu_epi16(row + 16 + i < from.count ? there : 0, data + (16 + i) * from.terms);
  }
}

enum class Factor { first, second };

// The terms [term, term + 32) of two tiles of rows or columns of c, from `at` on.
template <Factor kFactor>
ATTUNE_BFLOAT16_TILES void lay_out_tiles(const Source& from, int64_t term, int64_t at, bfloat16* low, bfloat16* high) {
  __m512i lower[16], upper[16];
  from.by_terms ? load_pairs(from, term, at, lower, upper) : load_rows(from, term, at, lower, upper);
  if (from.by_terms == (kFactor == Factor::first)) {
    turn(lower);
    turn(upper);
  }
  store_tile(lower, low);
  store_tile(upper, high);
}

template <class Out>
struct Product {
  Source a, b;
  const float* bias;
  Out* c;
  bool accumulate;
  Activation activation;
};

// Rows and columns of c.
struct Piece {
  int64_t row, rows, column, columns;
};

ATTUNE_BFLOAT16_TILES inline __m512 load(const float* from, __mmask16 there) {
  return _mm512_maskz_loadu_ps(there, from);
}
ATTUNE_BFLOAT16_TILES inline __m512 load(const bfloat16* from, __mmask16 there) {
  const __m256i bits = _mm256_maskz_loadu_epi16(there, from);
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}

// Writes the sums of 32 rows and columns to their place in c.
template <class Out>
ATTUNE_BFLOAT16_TILES void finish(const Product<Out>& p, float* sums, int64_t row, int64_t column) {
  const int64_t width = p.b.count, rows = std::min(kStrip, p.a.count - row);
  const bool relu = p.activation == Activation::relu, other = !relu && p.activation != Activation::none;
  for (int64_t j = 0; j < kStrip && column + j < width; j += kTileRows) {
    const auto there = static_cast<__mmask16>(first_bits(std::min(kTileRows, width - column - j)));
    const __m512 bias = p.bias != nullptr ? load(p.bias + column + j, there) : _mm512_setzero_ps();
    for (int64_t r = 0; r < rows; ++r) {
      float* const at = sums + r * kStrip + j;
      Out* const to = p.c + (row + r) * width + column + j;
      __m512 x = _mm512_add_ps(_mm512_load_ps(at), bias);
      if (relu) x = _mm512_max_ps(_mm512_setzero_ps(), x);  // x where it is not a number
      if (other) {
        _mm512_store_ps(at, x);
        activate(p.activation, at, at, kTileRows);
        x = _mm512_load_ps(at);
      }
      if (p.accumulate) x = _mm512_add_ps(load(to, there), x);
      store(to, there, x);
    }
  }
}

// The terms from `term` on of so many rows or columns of c.
template <Factor kFactor>
void lay_out(const Source& from, int64_t term, int64_t first, int64_t count, const LaidOut& to) {
  for (int64_t t = 0; t < to.tiles; ++t) {
    for (int64_t at = 0; at < count; at += kStrip) {
      bfloat16* const low = to.strip(at / kStrip) + t * kTileNumbers;
      lay_out_tiles<kFactor>(from, term + t * kTileTerms, first + at, low, low + to.tiles * kTileNumbers);
    }
  }
}

template <class T>
std::shared_ptr<Buffer> buffer_for(int64_t numbers) {
  return allocate_buffer(static_cast<size_t>(numbers) * sizeof(T));
}

// How many terms are multiplied at a time, and the rows and columns of a piece of c.
struct Blocks {
  int64_t terms, rows, columns;
};

// The sums of a piece of 512 rows and columns are 1 MiB. If all terms are one block, sums are not kept, and a piece has
// so many rows that each thread gets two pieces: then the columns of a piece are laid out once. The order of the terms
// depends on their number alone.
Blocks blocks_of(int64_t m, int64_t n, int64_t terms) {
  constexpr int64_t kSide = 512;
  const int64_t threads = thread_count();
  Blocks blocks{.terms = kBlockTerms, .rows = kSide, .columns = kSide};
  if (terms <= kMostAtOnce) {
    blocks.terms = round_up(terms, kTileTerms);
    blocks.rows = std::max(kSide, round_up(divide_up(m, 2 * threads), kStrip));
  }
  const auto pieces = [&] { return divide_up(m, blocks.rows) * divide_up(n, blocks.columns); };
  while (pieces() < threads && std::max(blocks.rows, blocks.columns) > 2 * kStrip)
    (blocks.rows < blocks.columns ? blocks.columns : blocks.rows) /= 2;
  return blocks;
}

template <class Out>
ATTUNE_BFLOAT16_TILES void multiply_piece(const Product<Out>& p, const Piece& piece, int64_t block) {
  const bool at_once = p.a.terms <= block;
  const int64_t row_strips = divide_up(piece.rows, kStrip), column_strips = divide_up(piece.columns, kStrip);
  const auto of_a = buffer_for<bfloat16>(std::min(row_strips, kStripsOfRows) * kStrip * block);
  const auto of_b = buffer_for<bfloat16>(column_strips * kStrip * block);
  const auto of_c = buffer_for<float>((at_once ? 1 : row_strips * column_strips) * kStripNumbers);
  const Bfloat16Tiles whole_tiles(true);
  for (int64_t term = 0; term < p.a.terms; term += block) {
    const bool last = term + block >= p.a.terms;
    const LaidOut a{static_cast<bfloat16*>(of_a->data()), divide_up(std::min(block, p.a.terms - term), kTileTerms)};
    const LaidOut b{static_cast<bfloat16*>(of_b->data()), a.tiles};
    auto* sums = static_cast<float*>(of_c->data());
    lay_out<Factor::second>(p.b, term, piece.column, piece.columns, b);
    for (int64_t i = 0; i < row_strips; ++i) {
      const int64_t row = piece.row + i * kStrip, rows = piece.rows - i * kStrip;
      if (i % kStripsOfRows == 0) lay_out<Factor::first>(p.a, term, row, std::min(rows, kStripsOfRows * kStrip), a);
      for (int64_t j = 0; j < column_strips; ++j) {
        multiply_tiles<true, true>(a.strip(i % kStripsOfRows), b.strip(j), a.tiles, term > 0, sums, kStrip);
        if (last) finish(p, sums, row, piece.column + j * kStrip);
        if (!at_once) sums += kStripNumbers;
      }
    }
  }
}

template <class Out>
void multiply(const Product<Out>& product) {
  const int64_t m = product.a.count, n = product.b.count;
  const Blocks blocks = blocks_of(m, n, product.a.terms);
  const int64_t by_rows = divide_up(m, blocks.rows);
  parallel_for(by_rows * divide_up(n, blocks.columns), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i % by_rows * blocks.rows, column = i / by_rows * blocks.columns;
      const Piece piece{.row = row,
                        .rows = std::min(blocks.rows, m - row),
                        .column = column,
                        .columns = std::min(blocks.columns, n - column)};
      multiply_piece(product, piece, blocks.terms);
    }
  });
}

}  // namespace

template <class Out>
void amx_matmul(const bfloat16* a, const bfloat16* b, const float* bias, Out* c, const MatmulShape& shape) {
  multiply<Out>({.a = {a, shape.k, shape.m, shape.transpose_a},
                 .b = {b, shape.k, shape.n, !shape.transpose_b},
                 .bias = bias,
                 .c = c,
                 .accumulate = shape.accumulate,
                 .activation = shape.activation});
}

}  // namespace attune::cpu

#else

#include <stdexcept>

namespace attune::cpu {

template <class Out>
void amx_matmul(const bfloat16*, const bfloat16*, const float*, Out*, const MatmulShape&) {
  throw std::logic_error("a product of AMX on a processor without it");
}

}  // namespace attune::cpu

#endif

namespace attune::cpu {

template void amx_matmul(const bfloat16*, const bfloat16*, const float*, float*, const MatmulShape&);
template void amx_matmul(const bfloat16*, const bfloat16*, const float*, bfloat16*, const MatmulShape&);

}  // namespace attune::cpu
