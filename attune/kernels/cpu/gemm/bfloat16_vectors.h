#pragma once
// Products of bfloat16 in the vectors of AVX-512, which multiply two terms at a time and sum up in float32. They need
// has_avx512_bfloat16().

#include "attune/kernels/cpu/gemm/panel_block.h"
#include "attune/tensor/dtype.h"

namespace attune::cpu {

/// The first factor of a product in pairs of inputs: pair i of row r stands at numbers[r * row + i * pair]. Either
/// `pair` or `row` is 2.
struct PairRows {
  const bfloat16* numbers;
  int64_t row, pair = 2;
};

/// Multiplies with panels of bfloat16. A row with an odd number of inputs must have one more finite number behind it.
/// `onto`: the sums are added to what y has. Every sum is one chain over the inputs, so that a row's result does not
/// depend on other rows.
void bfloat16_vectors(const PairRows& x, const PanelBlock& block, bool onto = false);

/// Rows of bfloat16, `width` numbers apart, which sums are rounded to; with `relu` max(0, sum).
struct RoundedRows {
  bfloat16* numbers;
  int64_t width;
  bool relu;
};
/// The same sums with their bias, written to `to` in place of the block's y.
void bfloat16_vectors(const PairRows& x, const PanelBlock& block, const RoundedRows& to);

/// Puts the numbers of two rows side by side, 16 of each a panel, the panels `step` numbers apart: to[step * p + 2 * j]
/// = first[16 * p + j], and the second row's number behind it. A null `second` stands for zeros; the last panel is
/// filled up with zeros. Numbers that stand `ahead` behind both rows are fetched into the cache.
void pair_rows(const bfloat16* first, const bfloat16* second, int64_t count, bfloat16* to, int64_t step, int64_t ahead);

}  // namespace attune::cpu
