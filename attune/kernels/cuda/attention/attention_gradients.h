#pragma once
// What the backward kernels of attention form from a tile of queries and a tile of keys: the weights again, and the
// gradients of the scores.

#include <cmath>

#include "attune/kernels/cuda/attention/attention_block.h"

namespace attune::cuda {

/// What attention_backward() gets beside its inputs.
template <class Tiles>
struct AttentionBackwardView {
  using T = typename Tiles::Sum;
  AttentionView<Tiles> in;
  AttentionPass pass;
  const int32_t* query_offsets;
  const int32_t* key_offsets;
  const TileOfSequence* tiles;
  const T* log_sum_exp;
  const typename Tiles::Source* d_out;
  const T* products;  // d_out . out of each row and head
};

/// The tiles in shared memory that a backward kernel works with.
template <class Tiles>
struct BackwardTiles {
  SharedTile<Tiles> q, k, v, dy;
  StoredTile<Tiles> factors;
  static constexpr size_t kBytes = 4 * SharedTile<Tiles>::kBytes + StoredTile<Tiles>::kBytes;

  ATTUNE_DEVICE explicit BackwardTiles(Thread& thread) : q(thread), k(thread), v(thread), dy(thread), factors(thread) {}
  ATTUNE_DEVICE void next_queries(Thread& thread) { next_rows(thread, q, dy); }
  ATTUNE_DEVICE void next_keys(Thread& thread) { next_rows(thread, k, v); }
};

template <class Tiles>
struct PairGradients {
  TilePart<Tiles> weights;   // with dropout
  TilePart<Tiles> d_scores;  // of q . (k + relative key) times scale; 0 where a query does not see a key
};

/// Returns the gradients of a tile of queries against a tile of keys. Loads into `tiles` what the products need.
template <class Tiles>
ATTUNE_DEVICE PairGradients<Tiles> form_gradients(Thread& thread, const AttentionBackwardView<Tiles>& view,
                                                  const AttentionBlockOf<Tiles>& block, BackwardTiles<Tiles>& tiles) {
  using T = typename Tiles::Sum;
  T log_sum_exp[Tiles::kRows], products[Tiles::kRows];  // on their way while tiles are multiplied
  ATTUNE_UNROLL
  for (int i = 0; i < Tiles::kRows; ++i) {
    const bool exists = block.has_query(thread, i);
    const int64_t row = exists ? block.of.out_row(block.query(thread, i), block.head) : 0;
    log_sum_exp[i] = exists ? view.log_sum_exp[row] : T{0};
    products[i] = exists ? view.products[row] : T{0};
  }
  PairGradients<Tiles> result{block.key_products(thread, tiles.q, tiles.k),
                              block.value_products(thread, view.d_out, tiles.dy, tiles.v)};
  const bool all = block.sees_all();
  ATTUNE_UNROLL
  for (int i = 0; i < Tiles::kRows; ++i) {
    const auto kept = block.dropout_row(thread, i);
    ATTUNE_UNROLL
    for (int j = 0; j < Tiles::kColumns; ++j) {
      T& weight = result.weights.value[i][j];
      T& gradient = result.d_scores.value[i][j];
      if (!all && !block.sees(thread, i, j)) {
        weight = gradient = 0;
        continue;
      }
      const auto score = block.score(thread, weight, i, j);
      weight = Tiles::exp_of_difference(score.value, log_sum_exp[i]);
      const T factor = kept.active() ? kept[j] : T{1};
      gradient = weight * (gradient * factor - products[i]) * score.derivative;
      weight *= factor;
    }
  }
  return result;
}

}  // namespace attune::cuda
