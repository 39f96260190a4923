// The scores of one block of a plan, with ALiBi, distance bias and relative positions. Included once for each target
// (Highway).

#if defined(ATTUNE_KERNELS_ATTENTION_BLOCK_SCORES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTUNE_KERNELS_ATTENTION_BLOCK_SCORES_INL_H_
#undef ATTUNE_KERNELS_ATTENTION_BLOCK_SCORES_INL_H_
#else
#define ATTUNE_KERNELS_ATTENTION_BLOCK_SCORES_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "attune/kernels/cpu/attention/attention_tile_inl.h"
#include "attune/kernels/cpu/gemm/small_matmul_inl.h"

HWY_BEFORE_NAMESPACE();
namespace attune {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The rows of a sequence that belong to a block's queries or keys: row t lies at data + index[t] * stride.
template <class T>
struct RowsOfBlock {
  T* data;
  int64_t stride;
  const AttentionBlock::Indices& index;
  int64_t count;

  T* operator[](int64_t t) const { return data + index[static_cast<size_t>(t)] * stride; }
};
template <class T>
RowsOfBlock<T> QueriesOf(const AttentionBlock& block, T* data, int64_t stride) {
  return {data, stride, block.queries, block.rows};
}
template <class T>
RowsOfBlock<T> KeysOf(const AttentionBlock& block, T* data, int64_t stride) {
  return {data, stride, block.keys, block.columns};
}

// Copies `width` numbers of each row to rows of `padded` numbers, whose rest becomes zero.
template <class T>
void GatherRows(RowsOfBlock<const T> from, int64_t width, int64_t padded, T* to) {
  for (int64_t t = 0; t < from.count; ++t, to += padded) {
    std::copy_n(from[t], width, to);
    std::fill(to + width, to + padded, T{0});
  }
}

// Adds the rows to those that GatherRows() would copy.
template <class T>
void ScatterAddRows(const T* from, int64_t padded, int64_t width, RowsOfBlock<T> to) {
  for (int64_t t = 0; t < to.count; ++t, from += padded) {
    T* row = to[t];
    for (int64_t c = 0; c < width; ++c) row[c] += from[c];
  }
}

// The rows of the tables of relative positions that a block needs: `count` of them from `first`.
struct RelativeRows {
  int64_t clip, first, count, padded;

  RelativeRows(int64_t most, const AttentionSpan& span, const AttentionBlock& block, int64_t lanes) : clip(most) {
    const auto row = [&](int64_t query, int64_t key) {
      return std::clamp(block.keys[static_cast<size_t>(key)] - span.position(block.queries[static_cast<size_t>(query)]),
                        -clip, clip) +
             clip;
    };
    first = row(block.rows - 1, 0);
    count = row(0, block.columns - 1) - first + 1;
    padded = round_up(count, lanes);
  }
  int64_t at(int64_t distance) const { return std::clamp(distance, -clip, clip) + clip - first; }
};

// A table of relative positions as the products want it: rows padded, and transposed. Both are null without a table.
template <class T>
struct RelativeTable {
  int64_t rows = 0, width = 0, row_stride = 0, column_stride = 0;
  T* table = nullptr;
  T* transposed = nullptr;

  static int64_t elements(int64_t rows, int64_t width, int64_t lanes) {
    return rows * round_up(width, lanes) + width * (round_up(rows, lanes) + lanes) + 64;
  }
  RelativeTable() = default;
  RelativeTable(const T* from, int64_t row_count, int64_t columns, int64_t lanes, Scratch<T>& scratch)
      : rows(row_count),
        width(columns),
        row_stride(round_up(columns, lanes)),
        column_stride(round_up(row_count, lanes) + lanes) {  // a product may begin at any row and reads whole vectors
    if (from == nullptr) return;
    table = scratch.take(rows * row_stride);
    transposed = scratch.take(width * column_stride);
    CopyRows(from, width, rows, width, row_stride, table);
    CopyTransposed(from, width, rows, width, column_stride, transposed);
  }
};

// The scores of one block at a time.
template <class T>
class BlockScores {
 public:
  const int64_t dkp, dvp;
  T *q, *keys, *scores;
  T* relative;  // [kTile, rows of the tables]: a product with a table, or weights collected by their row of it
  RelativeTable<T> relative_keys, relative_values;

  static int64_t elements(const AttentionPointers<T>& in, int64_t lanes) {
    const int64_t table = 2 * in.clip + 1;
    return kTile * (3 * round_up(in.d_k, lanes) + kTile + round_up(table, lanes)) +
           RelativeTable<T>::elements(table, in.d_k, lanes) + RelativeTable<T>::elements(table, in.d_v, lanes) + 512;
  }
  BlockScores(const AttentionPointers<T>& in, int64_t lanes, Scratch<T>& scratch)
      : dkp(round_up(in.d_k, lanes)), dvp(round_up(in.d_v, lanes)), lanes_(lanes) {
    const int64_t table = 2 * in.clip + 1;
    q = scratch.take(kTile * dkp);
    keys = scratch.take(kTile * dkp);
    keys_t_ = scratch.take(kTile * dkp);
    scores = scratch.take(kTile * kTile);
    relative = scratch.take(kTile * round_up(table, lanes));
    relative_keys = RelativeTable<T>(in.relative_keys, table, in.d_k, lanes, scratch);
    relative_values = RelativeTable<T>(in.relative_values, table, in.d_v, lanes, scratch);
  }

  int64_t padded(const AttentionBlock& block) const { return round_up(block.columns, lanes_); }
  RelativeRows relative_rows(const Task<T>& task, const AttentionBlock& block) const {
    return {task.in.clip, task.span(), block, lanes_};
  }

  void LoadKeys(const Task<T>& task, const AttentionBlock& block) {
    const AttentionPointers<T>& in = task.in;
    const int64_t stride = in.k_row;
    GatherRows(KeysOf(block, in.k + task.k_begin * stride + task.kv_head * in.d_k, stride), in.d_k, dkp, keys);
    CopyTransposed(keys, dkp, block.columns, in.d_k, padded(block), keys_t_);
  }

  // Writes q, and the scaled scores with every term; -infinity where a query does not see a key.
  void Compute(const Task<T>& task, const AttentionBlock& block, int64_t head) {
    const hn::ScalableTag<T> d;
    const AttentionPointers<T>& in = task.in;
    const int64_t stride = in.q_row, width = padded(block);
    GatherRows(QueriesOf(block, in.q + task.q_begin * stride + head * in.d_k, stride), in.d_k, dkp, q);
    SmallMatmul(d, {q, dkp, 1}, {keys_t_, width, in.d_k}, {scores, block.rows, width}, false);
    if (relative_keys.table) AddRelative(task, block, q, dkp, relative_keys, scores);
    const T slope = in.slopes.empty() ? T{0} : static_cast<T>(in.slopes[static_cast<size_t>(head)]);
    const T scale = static_cast<T>(in.scale), cap = static_cast<T>(in.soft_cap);
    for (int64_t t = 0; t < block.rows; ++t) {
      T* row = scores + t * width;
      const int64_t query = block.queries[static_cast<size_t>(t)];
      const int64_t position = task.span().position(query);
      for (int64_t u = 0; u < width; ++u) row[u] *= scale;
      if (in.soft_cap > 0) {
        for (int64_t u = 0; u < block.columns; ++u) row[u] = cap * std::tanh(row[u] / cap);
      }
      if (slope != T{0}) {
        for (int64_t u = 0; u < block.columns; ++u)
          row[u] -= slope * static_cast<T>(std::abs(block.keys[static_cast<size_t>(u)] - position));
      }
      if (in.distance_bias) {
        for (int64_t u = 0; u < block.columns; ++u)
          row[u] += in.distance_bias[in.bias_index(block.keys[static_cast<size_t>(u)] - position, head)];
      }
      MaskBlockRow(block, t, task.mask_row(query), width, row);
    }
  }

  // to[t][u] += x[t] . table[row of query t and key u].
  void AddRelative(const Task<T>& task, const AttentionBlock& block, const T* x, int64_t x_row,
                   const RelativeTable<T>& table, T* to) {
    const RelativeRows rows = relative_rows(task, block);
    SmallMatmul(hn::ScalableTag<T>(), {x, x_row, 1}, {table.transposed + rows.first, table.column_stride, table.width},
                {relative, block.rows, rows.padded}, false);
    for (int64_t t = 0; t < block.rows; ++t) {
      const T* from = relative + t * rows.padded;
      T* row = to + t * padded(block);
      const int64_t position = task.span().position(block.queries[static_cast<size_t>(t)]);
      if (rows.count == 1) {  // all of the block is farther away than the tables reach
        for (int64_t u = 0; u < block.columns; ++u) row[u] += from[0];
        continue;
      }
      for (int64_t u = 0; u < block.columns; ++u)
        row[u] += from[rows.at(block.keys[static_cast<size_t>(u)] - position)];
    }
  }

  // relative[t][r] = the sum of weights[t][u] over the keys u at relative row r. Weights beyond the keys are zero.
  RelativeRows Collect(const Task<T>& task, const AttentionBlock& block, const T* weights) {
    const RelativeRows rows = relative_rows(task, block);
    for (int64_t t = 0; t < block.rows; ++t) {
      T* to = relative + t * rows.padded;
      std::fill_n(to, rows.padded, T{0});
      const T* row = weights + t * padded(block);
      if (rows.count == 1) {
        to[0] = SumRow(hn::ScalableTag<T>(), padded(block), row);
        continue;
      }
      const int64_t position = task.span().position(block.queries[static_cast<size_t>(t)]);
      for (int64_t u = 0; u < block.columns; ++u) to[rows.at(block.keys[static_cast<size_t>(u)] - position)] += row[u];
    }
    return rows;
  }

 private:
  static void MaskBlockRow(const AttentionBlock& block, int64_t t, const uint8_t* mask, int64_t width, T* row) {
    const T minus_infinity = -std::numeric_limits<T>::infinity();
    const auto i = static_cast<size_t>(t);
    std::fill(row, row + block.begin[i], minus_infinity);
    std::fill(row + block.gap_begin[i], row + block.gap_end[i], minus_infinity);
    std::fill(row + block.end[i], row + width, minus_infinity);
    if (mask == nullptr) return;
    for (int64_t u = block.begin[i]; u < block.end[i]; ++u) {
      if (mask[block.keys[static_cast<size_t>(u)]] == 0) row[u] = minus_infinity;
    }
  }

  const int64_t lanes_;
  T* keys_t_;
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attune
HWY_AFTER_NAMESPACE();

#endif
