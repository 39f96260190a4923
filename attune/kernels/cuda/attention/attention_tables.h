#pragma once
// Gradients of the tables of attention: relative keys, relative values and distance biases. Each row of a table gets a
// sum over pairs of all queries, so some blocks each sum up tiles of queries in a table of their own, and these tables
// are added in their order.

#include <algorithm>
#include <initializer_list>

#include "attune/kernels/cuda/attention/attention_gradients.h"
#include "attune/kernels/cuda/runtime/launch.h"

namespace attune::cuda {

/// One table. While a tile of queries is worked on, each of its rows has a sum for each distance.
template <class T>
struct TableSums {
  T* sums;      // [blocks, rows, columns], or null: there is no such table
  T* of_pairs;  // [blocks, kTile, rows]
  int rows;     // 2 limit + 1
  int64_t columns;

  ATTUNE_DEVICE T* sums_of(int64_t block) const { return sums + block * rows * columns; }
  ATTUNE_DEVICE T* pairs_of(int64_t block) const { return of_pairs + block * kTile * rows; }

  ATTUNE_DEVICE void clear_pairs(const Thread& thread) const {
    if (sums == nullptr) return;
    for (int e = thread.index(); e < kTile * rows; e += thread.count()) pairs_of(thread.block())[e] = 0;
  }

  /// Adds factors[query][key] to the sum of the query and the distance of the key. Keys of one distance are neighbours:
  /// the thread of the first one adds up all of them.
  template <class Tiles, class Values, class DistanceOf>
  ATTUNE_DEVICE void add_pairs(const Thread& thread, const Values& factors, int queries, int keys,
                               DistanceOf distance_of) const {
    const auto row_of = [&](int r, int c) { return AttentionTerms<T>::table_row(distance_of(r, c), rows / 2); };
    for (int e = thread.index(); e < queries * kTile; e += thread.count()) {
      const int r = e / kTile, first = e % kTile;
      if (first >= keys) continue;
      const int row = row_of(r, first);
      if (first > 0 && row_of(r, first - 1) == row) continue;
      T sum = 0;
      for (int c = first; c < keys && row_of(r, c) == row; ++c) sum += static_cast<T>(factors[r * Tiles::kPitch + c]);
      pairs_of(thread.block())[r * rows + row] += sum;
    }
  }

  /// Adds the sum over the queries r of pairs[r][row] * numbers(r, column) * factor.
  template <class Numbers>
  ATTUNE_DEVICE void add_rows(const Thread& thread, int queries, int64_t first_column, int64_t width, T factor,
                              Numbers numbers) const {
    const T* const pairs = pairs_of(thread.block());
    for (int64_t e = thread.index(); e < rows * width; e += thread.count()) {
      const int64_t row = e / width, c = e % width;
      T sum = 0;
      for (int r = 0; r < queries; ++r) sum += pairs[r * rows + row] * numbers(r, c);
      sums_of(thread.block())[row * columns + first_column + c] += sum * factor;
    }
  }
};

/// Block n works on tiles n, n + blocks, ... of all heads.
template <class Tiles>
struct TableGradientKernel {
  using T = typename Tiles::Sum;
  static constexpr int kThreads = Tiles::kThreads;
  AttentionBackwardView<Tiles> view;
  TableSums<T> keys, values, bias;
  int64_t jobs;

  ATTUNE_DEVICE void operator()(Thread& thread) const {
    BackwardTiles<Tiles> tiles(thread);
    for (int64_t job = thread.block(); job < jobs; job += thread.blocks()) {
      const int head = static_cast<int>(job % view.in.heads);
      const TileOfSequence tile = view.tiles[job / view.in.heads];
      const AttentionSequence<Tiles> of(view.in, view.pass, tile, view.query_offsets, view.key_offsets);
      const TileRange queries(tile.first, of.pairs.queries().end);
      keys.clear_pairs(thread);
      values.clear_pairs(thread);
      bias.clear_pairs(thread);
      tiles.next_queries(thread);
      const NumberRange seen = of.pairs.keys_of({queries.first, queries.first + queries.count});
      for (int b = seen.begin; b < seen.end; b += kTile)
        add_pairs(thread, AttentionBlockOf<Tiles>{of, head, queries, {b, seen.end}}, tiles);
      thread.barrier();
      add_rows(thread, of, head, queries);
      thread.barrier();
    }
  }

 private:
  ATTUNE_DEVICE void add_pairs(Thread& thread, const AttentionBlockOf<Tiles>& block,
                               BackwardTiles<Tiles>& tiles) const {
    tiles.next_keys(thread);
    const PairGradients<Tiles> pairs = form_gradients(thread, view, block, tiles);
    const auto distance = [&](int r, int c) {
      return block.of.distance(block.queries.first + r, block.keys.first + c);
    };
    const auto add = [&](const TableSums<T>& table) {
      if (table.sums == nullptr) return;
      table.template add_pairs<Tiles>(thread, tiles.factors.data(), block.queries.count, block.keys.count, distance);
    };
    tiles.factors.store(thread, pairs.d_scores);
    add(keys);
    add(bias);  // with a bias there is no soft cap: these are the gradients of the scores
    tiles.factors.store(thread, pairs.weights);
    add(values);
  }

  ATTUNE_DEVICE void add_rows(const Thread& thread, const AttentionSequence<Tiles>& of, int head,
                              const TileRange& queries) const {
    const AttentionView<Tiles>& in = view.in;
    if (keys.sums != nullptr)
      keys.add_rows(thread, queries.count, 0, in.q.d, in.terms.scale, [&](int r, int64_t c) {
        return static_cast<T>(in.q.at(of.query_row(queries.first + r), head)[c]);
      });
    if (values.sums != nullptr)
      values.add_rows(thread, queries.count, 0, in.v.d, T{1}, [&](int r, int64_t c) {
        return static_cast<T>(view.d_out[of.out_row(queries.first + r, head) * in.v.d + c]);
      });
    if (bias.sums != nullptr) bias.add_rows(thread, queries.count, head, 1, T{1}, [](int, int64_t) { return T{1}; });
  }
};

/// gradient[i] = the sum over the blocks of sums[block][i].
template <class T>
struct AddTables {
  const T* sums;
  T* gradient;
  int64_t blocks, elements;
  ATTUNE_DEVICE void operator()(int64_t i) const {
    T sum = 0;
    for (int64_t block = 0; block < blocks; ++block) sum += sums[block * elements + i];
    gradient[i] = sum;
  }
};

/// The gradients of the tables of one attention_backward().
template <class Tiles>
class TableGradients {
 public:
  using T = typename Tiles::Sum;
  TableGradients(Cuda device, const AttentionInputs& in, const AttentionGradients& gradients)
      : device_(device),
        heads_(in.q.heads),
        blocks_(blocks_for({&gradients.d_relative_keys, &gradients.d_relative_values, &gradients.d_distance_bias})),
        keys_(device, gradients.d_relative_keys, blocks_),
        values_(device, gradients.d_relative_values, blocks_),
        bias_(device, gradients.d_distance_bias, blocks_) {}

  /// Adds what the pairs of view.pass contribute; view.tiles are `count` tiles of queries.
  void add(const AttentionBackwardView<Tiles>& view, int64_t count) {
    if constexpr (!Tiles::kPlain) {
      if (!keys_.gradient.defined() && !values_.gradient.defined() && !bias_.gradient.defined()) return;
      const int64_t jobs = count * heads_;
      launch(
          device_, "attention gradient of tables",
          {.blocks = std::min(jobs, blocks_), .threads = Tiles::kThreads, .shared_bytes = BackwardTiles<Tiles>::kBytes},
          TableGradientKernel<Tiles>{view, keys_.view(), values_.view(), bias_.view(), jobs});
    }
  }
  void write() {
    for (const Table* table : {&keys_, &values_, &bias_}) {
      if (!table->gradient.defined()) continue;
      const int64_t elements = table->gradient.numel();
      for_each_element(
          device_, "attention gradient of tables", elements,
          AddTables<T>{table->sums.template data<T>(), table->gradient.template data<T>(), blocks_, elements});
    }
  }

 private:
  // As many as keep a GPU busy, fewer where the tables are long: what a block has of its own grows with them.
  static int64_t blocks_for(std::initializer_list<const Tensor*> tables) {
    constexpr int64_t kMostBlocks = 128, kMostBytes = int64_t{256} << 20;
    int64_t bytes = 1;
    for (const Tensor* table : tables)
      if (table->defined()) bytes += table->size(0) * (kTile + table->size(1)) * int64_t{sizeof(T)};
    return std::clamp<int64_t>(kMostBytes / bytes, 1, kMostBlocks);
  }

  struct Table {
    Tensor gradient, sums, of_pairs;

    Table(Cuda device, const Tensor& table, int64_t blocks) : gradient(table) {
      if (!table.defined()) return;
      const TensorOptions options{table.dtype(), Device(device)};
      sums = Tensor::zeros({blocks, table.size(0), table.size(1)}, options);
      of_pairs = Tensor::empty({blocks, kTile, table.size(0)}, options);
    }
    TableSums<T> view() const {
      if (!gradient.defined()) return {nullptr, nullptr, 0, 0};
      return {sums.data<T>(), of_pairs.data<T>(), static_cast<int>(gradient.size(0)), gradient.size(1)};
    }
  };

  Cuda device_;
  int64_t heads_, blocks_;
  Table keys_, values_, bias_;
};

}  // namespace attune::cuda
