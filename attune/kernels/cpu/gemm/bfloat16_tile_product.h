#pragma once

#include <cstdint>

namespace attune::cpu {

/// c [m, n] = or += a [m, k] b [k, n] of float32 numbers that lie in cache. Element (i, p) of a is a[i * a_row + p *
/// a_column]; one of both steps is 1. Rows of b are b_row apart; rows of c lie one after another. Rows of c from m up
/// to the next multiple of 16 are read and overwritten; if a_row is 1, the same rows of a are read.
struct TileProduct {
  const float* a;
  int64_t a_row, a_column;
  const float* b;
  int64_t b_row;
  float* c;
  int64_t m, n, k;
  bool accumulate;
};

/// The largest m; the largest k if n is at most 64, and the largest n if k is at most 64.
constexpr int64_t kMostTileRows = 64, kMostTileWidth = 256;

/// The product in tiles: a and b are rounded to bfloat16, sums are float32. n is a multiple of 16. Needs a
/// Bfloat16Tiles of the calling thread.
void bfloat16_tile_product(const TileProduct& product);

}  // namespace attune::cpu
