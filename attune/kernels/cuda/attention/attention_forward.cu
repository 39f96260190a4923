#include <cmath>
#include <type_traits>

#include "attune/kernels/attention/attention.h"
#include "attune/kernels/cuda/attention/attention_block.h"
#include "attune/kernels/cuda/runtime/launch.h"

namespace attune {
namespace {

// One block for a tile of queries of one head and kValueTiles * kTile columns of its values. The maximum and the sum of
// the softmax run along with the tiles of keys. A second pass begins with what the first one left in `out` and in a
// copy of its log_sum_exp: there the weights have the sum 1.
template <class Tiles, int kValueTiles>
struct AttentionForward {
  using T = typename Tiles::Sum;
  using Source = typename Tiles::Source;
  static constexpr int kThreads = Tiles::kThreads;
  static constexpr int kBlocks = kValueTiles == 1 && kThreads == 128 ? 3 : 1;
  static constexpr size_t kShared = 3 * cuda::SharedTile<Tiles>::kBytes + cuda::StoredTile<Tiles>::kBytes;

  cuda::AttentionView<Tiles> in;
  cuda::AttentionPass pass;
  const int32_t* query_offsets;
  const int32_t* key_offsets;
  const cuda::TileOfSequence* tiles;
  const T* carried;  // log_sum_exp of the first pass; null: there was none
  Source* out;
  T* log_sum_exp;

  struct State {
    int first_chunk;  // of kTile columns of the values
    T largest[Tiles::kRows];
    T sum[Tiles::kRows];  // of this thread's columns
    cuda::TilePart<Tiles> values[kValueTiles];
  };
  using Block = cuda::AttentionBlockOf<Tiles>;

  ATTUNE_HOST_DEVICE static int64_t value_blocks(int d_v) {
    return (d_v + kValueTiles * cuda::kTile - 1) / (kValueTiles * cuda::kTile);
  }

  ATTUNE_DEVICE void operator()(cuda::Thread& thread) const {
    const int64_t value_block = thread.block() % value_blocks(in.v.d), job = thread.block() / value_blocks(in.v.d);
    const cuda::TileOfSequence tile = tiles[job / in.heads];
    const cuda::AttentionSequence<Tiles> of(in, pass, tile, query_offsets, key_offsets);
    const cuda::TileRange queries(tile.first, of.pairs.queries().end);
    const int head = static_cast<int>(job % in.heads);
    cuda::SharedTile<Tiles> q(thread), k(thread), v(thread);
    cuda::StoredTile<Tiles> weights(thread);

    State state;
    state.first_chunk = static_cast<int>(value_block) * kValueTiles;
    begin(thread, Block{of, head, queries, {0, 0}}, state);
    const cuda::NumberRange seen = of.pairs.keys_of({queries.first, queries.first + queries.count});
    const auto start = [&](int b) {
      if (b < seen.end) Block{of, head, queries, {b, seen.end}}.start_keys(thread, k, v);
    };
    start(seen.begin);
    for (int b = seen.begin; b < seen.end; b += cuda::kTile) {
      const Block block{of, head, queries, {b, seen.end}};
      next_rows(thread, k, v);
      start(b + cuda::kTile);
      cuda::TilePart<Tiles> scores = block.key_products(thread, q, k);
      block.form_scores(thread, scores);
      weigh(thread, block, scores, state);
      add_values(thread, block, scores, weights, v, state);
    }
    end(thread, Block{of, head, queries, {0, 0}}, state);
  }

 private:
  ATTUNE_DEVICE void begin(const cuda::Thread& thread, const Block& block, State& state) const {
    const bool first_of_row = cuda::first_of_row<Tiles>(thread);
    ATTUNE_UNROLL
    for (int i = 0; i < Tiles::kRows; ++i) {
      state.largest[i] = -cuda::infinity<T>();
      state.sum[i] = 0;
      if (carried == nullptr || !block.has_query(thread, i)) continue;
      const T before = carried[block.of.out_row(block.query(thread, i), block.head)];
      if (before == cuda::infinity<T>()) continue;  // no key yet
      state.largest[i] = before;
      state.sum[i] = first_of_row ? T{1} : T{0};
      visit_out(thread, block, state.first_chunk, i,
                [&](int n, int j, Source& value) { state.values[n].value[i][j] = static_cast<T>(value); });
    }
  }

  // Scores become weights, relative to the largest score so far, with dropout; the state follows.
  ATTUNE_DEVICE void weigh(cuda::Thread& thread, const Block& block, cuda::TilePart<Tiles>& part, State& state) const {
    ATTUNE_UNROLL
    for (int i = 0; i < Tiles::kRows; ++i) {
      T largest = state.largest[i];
      ATTUNE_UNROLL
      for (int j = 0; j < Tiles::kColumns; ++j) largest = std::fmax(largest, part.value[i][j]);
      largest = cuda::reduce_row<Tiles>(thread, largest, cuda::Largest{});
      const T reference = largest == -cuda::infinity<T>() ? T{0} : largest;
      const T factor = Tiles::exp_of_difference(state.largest[i], reference);  // 0 before the first key
      state.largest[i] = largest;
      state.sum[i] *= factor;
      ATTUNE_UNROLL
      for (int n = 0; n < kValueTiles; ++n) {
        ATTUNE_UNROLL
        for (int j = 0; j < Tiles::kColumns; ++j) state.values[n].value[i][j] *= factor;
      }
      ATTUNE_UNROLL
      for (int j = 0; j < Tiles::kColumns; ++j) {
        part.value[i][j] = Tiles::exp_of_difference(part.value[i][j], reference);
        state.sum[i] += part.value[i][j];
      }
      const typename Block::DropoutRow kept = block.dropout_row(thread, i);
      if (!kept.active()) continue;
      ATTUNE_UNROLL
      for (int j = 0; j < Tiles::kColumns; ++j) part.value[i][j] *= kept[j];
    }
  }

  // `room` receives the weights if they are needed in shared memory.
  ATTUNE_DEVICE void add_values(cuda::Thread& thread, const Block& block, const cuda::TilePart<Tiles>& weights,
                                cuda::StoredTile<Tiles>& room, cuda::SharedTile<Tiles>& v, State& state) const {
    ATTUNE_UNROLL
    for (int n = 0; n < kValueTiles; ++n) {
      const int chunk = state.first_chunk + n;
      if (chunk * cuda::kTile >= in.v.d) continue;
      block.load_v(thread, chunk, v);
      multiply_part(thread, weights, room, v, block.keys.count, state.values[n]);
      if (!block.has_relative_values()) continue;
      room.store(thread, weights);
      block.add_table_rows(thread, room.data(), in.terms.relative_values, in.v.d, chunk, state.values[n]);
    }
  }

  ATTUNE_DEVICE void end(cuda::Thread& thread, const Block& block, const State& state) const {
    ATTUNE_UNROLL
    for (int i = 0; i < Tiles::kRows; ++i) {
      const T sum = cuda::reduce_row<Tiles>(thread, state.sum[i], cuda::Sum{});
      if (!block.has_query(thread, i)) continue;
      const T factor = sum == 0 ? T{0} : 1 / sum;
      visit_out(thread, block, state.first_chunk, i, [&](int n, int j, Source& value) {
        value = static_cast<Source>(state.values[n].value[i][j] * factor);
      });
      if (state.first_chunk > 0 || !cuda::first_of_row<Tiles>(thread)) continue;
      const T reference = state.largest[i] == -cuda::infinity<T>() ? T{0} : state.largest[i];
      log_sum_exp[block.of.out_row(block.query(thread, i), block.head)] =
          sum == 0 ? cuda::infinity<T>() : reference + std::log(sum);
    }
  }

  // Calls visit(n, j, number of out) for the numbers of row i that belong to this thread.
  template <class Visit>
  ATTUNE_DEVICE void visit_out(const cuda::Thread& thread, const Block& block, int first_chunk, int i,
                               Visit visit) const {
    Source* const row = out + block.of.out_row(block.query(thread, i), block.head) * in.v.d;
    ATTUNE_UNROLL
    for (int n = 0; n < kValueTiles; ++n) {
      ATTUNE_UNROLL
      for (int j = 0; j < Tiles::kColumns; ++j) {
        const int c = (first_chunk + n) * cuda::kTile + Tiles::column(thread, j);
        if (c < in.v.d) visit(n, j, row[c]);
      }
    }
  }
};

// Weights without dropout from the scores and their logarithms. One block for a tile of queries of one head.
template <class Tiles>
struct AttentionWeights {
  using T = typename Tiles::Sum;
  static constexpr int kThreads = Tiles::kThreads;
  static constexpr size_t kShared = 2 * cuda::SharedTile<Tiles>::kBytes;

  cuda::AttentionView<Tiles> in;
  cuda::AttentionPass pass;
  const int32_t* query_offsets;
  const int32_t* key_offsets;
  const cuda::TileOfSequence* tiles;
  const T* log_sum_exp;
  T* weights;  // [sequences, heads, queries, keys]
  int64_t most_queries, most_keys;

  ATTUNE_DEVICE void operator()(cuda::Thread& thread) const {
    const cuda::TileOfSequence tile = tiles[thread.block() / in.heads];
    const cuda::AttentionSequence<Tiles> of(in, pass, tile, query_offsets, key_offsets);
    const cuda::TileRange queries(tile.first, of.pairs.queries().end);
    const int head = static_cast<int>(thread.block() % in.heads);
    cuda::SharedTile<Tiles> q(thread), k(thread);
    const cuda::NumberRange seen = of.pairs.keys_of({queries.first, queries.first + queries.count});
    for (int b = seen.begin; b < seen.end; b += cuda::kTile) {
      const cuda::AttentionBlockOf<Tiles> block{of, head, queries, {b, seen.end}};
      k.next_rows();
      cuda::TilePart<Tiles> scores = block.key_products(thread, q, k);
      block.form_scores(thread, scores);
      ATTUNE_UNROLL
      for (int i = 0; i < Tiles::kRows; ++i) {
        ATTUNE_UNROLL
        for (int j = 0; j < Tiles::kColumns; ++j) {
          if (scores.value[i][j] == -cuda::infinity<T>()) continue;
          const int a = block.query(thread, i);
          const int64_t row = (int64_t{of.sequence} * in.heads + head) * most_queries + of.pairs.query(a);
          weights[row * most_keys + of.pairs.key(block.key(thread, j))] =
              Tiles::exp_of_difference(scores.value[i][j], log_sum_exp[of.out_row(a, head)]);
        }
      }
    }
  }
};

}  // namespace

void attention_forward(Cuda device, const AttentionInputs& in, const Tensor& out, const Tensor& log_sum_exp) {
  cuda::for_attention_tiles(in, [&]<class Tiles>() {
    using T = typename Tiles::Sum;
    const auto run = [&]<class Kernel>(std::type_identity<Kernel>) {
      const cuda::AttentionCall<Tiles> call(device, in);
      Tensor carried;
      for (const auto& pass : call.passes()) {
        cuda::launch(device, "attention",
                     {.blocks = pass.query_count * in.q.heads * Kernel::value_blocks(call.view().v.d),
                      .threads = Kernel::kThreads,
                      .shared_bytes = Kernel::kShared},
                     Kernel{call.view(), pass.pass, call.query_offsets(), call.key_offsets(), pass.queries,
                            data_or_null<T>(carried), out.data<typename Tiles::Source>(), log_sum_exp.data<T>()});
        if (&pass != &call.passes().back()) carried = log_sum_exp.clone();
      }
    };
    if (in.v.d <= cuda::kTile) return run(std::type_identity<AttentionForward<Tiles, 1>>());
    run(std::type_identity<AttentionForward<Tiles, 2>>());
  });
}

void attention_weights(Cuda device, const AttentionInputs& in, const Tensor& log_sum_exp, const Tensor& weights) {
  cuda::for_attention_tiles<false>(in, [&]<class Tiles>() {
    using T = typename Tiles::Sum;
    using Kernel = AttentionWeights<Tiles>;
    const cuda::AttentionCall<Tiles> call(device, in);
    for (const auto& pass : call.passes())
      cuda::launch(
          device, "attention_weights",
          {.blocks = pass.query_count * in.q.heads, .threads = Kernel::kThreads, .shared_bytes = Kernel::kShared},
          Kernel{call.view(), pass.pass, call.query_offsets(), call.key_offsets(), pass.queries, log_sum_exp.data<T>(),
                 weights.data<T>(), weights.size(2), weights.size(3)});
  });
}

}  // namespace attune
