// Attention over the blocks of a plan: patterns, ALiBi, distance bias and relative positions. Included once for each
// target (Highway).

#if defined(ATTUNE_KERNELS_ATTENTION_BLOCKS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTUNE_KERNELS_ATTENTION_BLOCKS_INL_H_
#undef ATTUNE_KERNELS_ATTENTION_BLOCKS_INL_H_
#else
#define ATTUNE_KERNELS_ATTENTION_BLOCKS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "attune/kernels/cpu/attention/attention_block_scores_inl.h"
#include "attune/kernels/cpu/attention/attention_tile_inl.h"
#include "attune/kernels/cpu/gemm/small_matmul_inl.h"

HWY_BEFORE_NAMESPACE();
namespace attune {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Forward over the blocks of a plan. A query meets its keys in several blocks: until the last block is done, its
// running maximum is kept in log_sum_exp and its sum of exp(score) * value in out, both in their final places.
template <class T>
class BlockForward {
 public:
  // `most_rows`: the most queries of a task times its heads.
  BlockForward(const AttentionForward<T>& arguments, int64_t lanes, int64_t most_rows)
      : arguments_(arguments),
        scratch_(elements(arguments.in, lanes) + most_rows),
        tiles_(arguments.in, lanes, scratch_) {
    values_ = scratch_.take(kTile * tiles_.dvp);
    sums_ = scratch_.take(kTile * tiles_.dvp);
    totals_ = scratch_.take(most_rows);
  }

  void Run(const Task<T>& task) {
    ForEachRow(task, [&](int64_t row, T& total) {
      arguments_.log_sum_exp[row] = -std::numeric_limits<T>::infinity();
      std::fill_n(arguments_.out + row * task.in.d_v, task.in.d_v, T{0});
      total = 0;
    });
    for_each_block(task.in.pattern, task.span(), [&](const AttentionBlock& block) { Add(task, block); });
    ForEachRow(task, [&](int64_t row, T& total) {
      const bool nothing = total <= 0;
      const T inverse = nothing ? T{0} : T{1} / total;
      for (int64_t c = 0; c < task.in.d_v; ++c) arguments_.out[row * task.in.d_v + c] *= inverse;
      // +infinity makes every weight of the backward pass exp(score - infinity) = 0.
      T& log_sum_exp = arguments_.log_sum_exp[row];
      log_sum_exp = nothing ? std::numeric_limits<T>::infinity() : log_sum_exp + std::log(total);
    });
  }

 private:
  static int64_t elements(const AttentionPointers<T>& in, int64_t lanes) {
    return BlockScores<T>::elements(in, lanes) + 2 * kTile * round_up(in.d_v, lanes) + 64;
  }

  // Calls f(row of out, running sum of the row) for every query and head of the task.
  template <class F>
  void ForEachRow(const Task<T>& task, F&& f) {
    T* total = totals_;
    for (int64_t i = 0; i < task.queries; ++i) {
      for (int64_t h = task.first_head; h < task.last_head; ++h) f((task.q_begin + i) * task.in.heads + h, *total++);
    }
  }

  void Add(const Task<T>& task, const AttentionBlock& block) {
    const hn::ScalableTag<T> d;
    const AttentionPointers<T>& in = task.in;
    const int64_t dvp = tiles_.dvp, padded = tiles_.padded(block);
    const int64_t v_stride = in.v_row, o_stride = in.heads * in.d_v;
    tiles_.LoadKeys(task, block);
    GatherRows(KeysOf(block, in.v + task.k_begin * v_stride + task.kv_head * in.d_v, v_stride), in.d_v, dvp, values_);
    for (int64_t head = task.first_head; head < task.last_head; ++head) {
      T* out = arguments_.out + task.q_begin * o_stride + head * in.d_v;
      tiles_.Compute(task, block, head);
      GatherRows(QueriesOf<const T>(block, out, o_stride), in.d_v, dvp, sums_);
      for (int64_t t = 0; t < block.rows; ++t) Exponentiate(task, block, head, t);
      SmallMatmul(d, {tiles_.scores, padded, 1}, {values_, dvp, block.columns}, {sums_, block.rows, dvp}, true);
      if (tiles_.relative_values.table) {
        const RelativeRows rows = tiles_.Collect(task, block, tiles_.scores);
        SmallMatmul(d, {tiles_.relative, rows.padded, 1},
                    {tiles_.relative_values.table + rows.first * dvp, dvp, rows.count}, {sums_, block.rows, dvp}, true);
      }
      for (int64_t t = 0; t < block.rows; ++t)
        std::copy_n(sums_ + t * dvp, in.d_v, out + block.queries[static_cast<size_t>(t)] * o_stride);
    }
  }

  // Row t of the scores becomes exp(score - maximum), with dropout; what was summed up before follows the new maximum.
  void Exponentiate(const Task<T>& task, const AttentionBlock& block, int64_t head, int64_t t) {
    const hn::ScalableTag<T> d;
    const AttentionPointers<T>& in = task.in;
    const int64_t padded = tiles_.padded(block), query = block.queries[static_cast<size_t>(t)];
    const int64_t out_row = (task.q_begin + query) * in.heads + head;
    T* row = tiles_.scores + t * padded;
    T& largest = arguments_.log_sum_exp[out_row];
    T& total = totals_[query * task.heads() + head - task.first_head];
    const T most = std::max(largest, MaxRow(d, padded, row));
    if (most == -std::numeric_limits<T>::infinity() && !HasNan(row, padded)) {  // nothing may be attended to
      std::fill_n(row, padded, T{0});
      return;
    }
    const T shrink = std::exp(largest - most);  // 0 for the first block
    total = total * shrink + ExpRow(d, T{1}, most, padded, row);
    largest = most;
    if (shrink != T{1}) {
      for (int64_t c = 0; c < tiles_.dvp; ++c) sums_[t * tiles_.dvp + c] *= shrink;
    }
    if (!in.dropout.active()) return;
    HWY_ALIGN T factors[kTile];
    KeepFactors(in.dropout, out_row, block.dropout_group, factors);
    for (int64_t u = 0; u < padded; ++u) row[u] *= factors[u];
  }

  const AttentionForward<T>& arguments_;
  Scratch<T> scratch_;
  BlockScores<T> tiles_;
  T *values_, *sums_, *totals_;
};

// Backward over the same blocks. The gradients of the tables are summed up over the tasks that one of these runs.
template <class T>
class BlockBackward {
 public:
  BlockBackward(const AttentionBackward<T>& arguments, int64_t lanes)
      : arguments_(arguments), scratch_(elements(arguments.in, lanes)), tiles_(arguments.in, lanes, scratch_) {
    const int64_t table = 2 * arguments.in.clip + 1;
    values_ = scratch_.take(kTile * tiles_.dvp);
    values_t_ = scratch_.take(kTile * tiles_.dvp);
    d_out_ = scratch_.take(kTile * tiles_.dvp);
    d_scores_ = scratch_.take(kTile * kTile);
    dq_ = scratch_.take(kTile * tiles_.dkp);
    dk_ = scratch_.take(kTile * tiles_.dkp);
    dv_ = scratch_.take(kTile * tiles_.dvp);
    d_relative_keys_ = scratch_.take(table * tiles_.dkp);
    d_relative_values_ = scratch_.take(table * tiles_.dvp);
    std::fill_n(d_relative_keys_, table * tiles_.dkp, T{0});
    std::fill_n(d_relative_values_, table * tiles_.dvp, T{0});
    d_bias_ = scratch_.take(arguments.in.bias_elements());
    std::fill_n(d_bias_, arguments.in.bias_elements(), T{0});
  }

  void Run(const Task<T>& task) {
    const AttentionPointers<T>& in = task.in;
    ClearQueryGradients(task, 0, task.queries, arguments_.dq);
    for (int64_t j = 0; j < task.keys; ++j) {
      const int64_t row = task.k_begin + j;
      std::fill_n(arguments_.dk + row * in.k_row + task.kv_head * in.d_k, in.d_k, T{0});
      std::fill_n(arguments_.dv + row * in.v_row + task.kv_head * in.d_v, in.d_v, T{0});
    }
    for_each_block(in.pattern, task.span(), [&](const AttentionBlock& block) { Add(task, block); });
  }

  // [2 clip + 1, d_k], [2 clip + 1, d_v] and [2 reach + 1, heads]; null where there is no such table.
  void StoreTables(T* d_keys, T* d_values, T* d_bias) const {
    const AttentionPointers<T>& in = arguments_.in;
    for (int64_t r = 0; r < 2 * in.clip + 1; ++r) {
      if (in.relative_keys) std::copy_n(d_relative_keys_ + r * tiles_.dkp, in.d_k, d_keys + r * in.d_k);
      if (in.relative_values) std::copy_n(d_relative_values_ + r * tiles_.dvp, in.d_v, d_values + r * in.d_v);
    }
    std::copy_n(d_bias_, in.bias_elements(), d_bias);
  }

 private:
  static int64_t elements(const AttentionPointers<T>& in, int64_t lanes) {
    const int64_t dkp = round_up(in.d_k, lanes), dvp = round_up(in.d_v, lanes);
    return BlockScores<T>::elements(in, lanes) + kTile * (2 * dkp + 4 * dvp + kTile) + (2 * in.clip + 1) * (dkp + dvp) +
           in.bias_elements() + 320;
  }

  void Add(const Task<T>& task, const AttentionBlock& block) {
    const hn::ScalableTag<T> d;
    const AttentionPointers<T>& in = task.in;
    const int64_t dkp = tiles_.dkp, dvp = tiles_.dvp, padded = tiles_.padded(block);
    const int64_t q_stride = in.q_row, k_stride = in.k_row, v_stride = in.v_row;
    tiles_.LoadKeys(task, block);
    GatherRows(KeysOf(block, in.v + task.k_begin * v_stride + task.kv_head * in.d_v, v_stride), in.d_v, dvp, values_);
    CopyTransposed(values_, dvp, block.columns, in.d_v, padded, values_t_);
    std::fill_n(dk_, block.columns * dkp, T{0});
    std::fill_n(dv_, block.columns * dvp, T{0});
    for (int64_t head = task.first_head; head < task.last_head; ++head) {
      ComputeWeights(task, block, head);
      SmallMatmul(d, {tiles_.scores, 1, padded}, {d_out_, dvp, block.rows}, {dv_, block.columns, dvp}, true);
      SmallMatmul(d, {d_scores_, 1, padded}, {tiles_.q, dkp, block.rows}, {dk_, block.columns, dkp}, true);
      SmallMatmul(d, {d_scores_, padded, 1}, {tiles_.keys, dkp, block.columns}, {dq_, block.rows, dkp}, false);
      AddRelativeGradients(task, block);
      AddBiasGradients(task, block, head);
      ScatterAddRows(dq_, dkp, in.d_k,
                     QueriesOf(block, arguments_.dq + task.q_begin * q_stride + head * in.d_k, q_stride));
    }
    ScatterAddRows(dk_, dkp, in.d_k,
                   KeysOf(block, arguments_.dk + task.k_begin * k_stride + task.kv_head * in.d_k, k_stride));
    ScatterAddRows(dv_, dvp, in.d_v,
                   KeysOf(block, arguments_.dv + task.k_begin * v_stride + task.kv_head * in.d_v, v_stride));
  }

  // scores = the weights, formed again from log_sum_exp, with dropout; d_scores = the gradient of q (k + a).
  void ComputeWeights(const Task<T>& task, const AttentionBlock& block, int64_t head) {
    const hn::ScalableTag<T> d;
    const AttentionPointers<T>& in = task.in;
    const int64_t dvp = tiles_.dvp, padded = tiles_.padded(block), o_stride = in.heads * in.d_v;
    tiles_.Compute(task, block, head);
    GatherRows(QueriesOf(block, arguments_.d_out + task.q_begin * o_stride + head * in.d_v, o_stride), in.d_v, dvp,
               d_out_);
    SmallMatmul(d, {d_out_, dvp, 1}, {values_t_, padded, in.d_v}, {d_scores_, block.rows, padded}, false);
    if (tiles_.relative_values.table) tiles_.AddRelative(task, block, d_out_, dvp, tiles_.relative_values, d_scores_);
    for (int64_t t = 0; t < block.rows; ++t) {
      const int64_t query = block.queries[static_cast<size_t>(t)];
      const int64_t row = (task.q_begin + query) * in.heads + head;
      T* w = tiles_.scores + t * padded;
      HWY_ALIGN T slopes[kTile];
      if (in.soft_cap > 0) CapSlopes(static_cast<T>(in.soft_cap), padded, w, slopes);
      ExpRow(d, T{1}, arguments_.log_sum_exp[row], padded, w);
      ScoreGradients(d, in, {row, block.dropout_group, padded}, arguments_.dots[row], w, d_scores_ + t * padded);
      if (in.soft_cap > 0) {
        for (int64_t u = 0; u < padded; ++u) d_scores_[t * padded + u] *= slopes[u];
      }
    }
  }

  // The slopes of cap tanh(x / cap), from its values; 0 where a query does not see a key.
  static void CapSlopes(T cap, int64_t count, const T* scores, T* slopes) {
    for (int64_t u = 0; u < count; ++u) {
      const T share = scores[u] / cap;
      slopes[u] = std::isinf(share) ? T{0} : 1 - share * share;
    }
  }

  // d_scores contains the scale, which the bias is not multiplied with.
  void AddBiasGradients(const Task<T>& task, const AttentionBlock& block, int64_t head) {
    const AttentionPointers<T>& in = task.in;
    if (!in.distance_bias) return;
    const T inverse = static_cast<T>(1 / in.scale);
    for (int64_t t = 0; t < block.rows; ++t) {
      const T* row = d_scores_ + t * tiles_.padded(block);
      const int64_t position = task.span().position(block.queries[static_cast<size_t>(t)]);
      for (int64_t u = 0; u < block.columns; ++u)
        d_bias_[in.bias_index(block.keys[static_cast<size_t>(u)] - position, head)] += row[u] * inverse;
    }
  }

  // Shaw's tables: the weights and their gradients, collected by relative position, stand in for values and keys.
  void AddRelativeGradients(const Task<T>& task, const AttentionBlock& block) {
    const hn::ScalableTag<T> d;
    const int64_t dkp = tiles_.dkp, dvp = tiles_.dvp;
    if (tiles_.relative_keys.table) {
      const RelativeRows rows = tiles_.Collect(task, block, d_scores_);
      SmallMatmul(d, {tiles_.relative, rows.padded, 1},
                  {tiles_.relative_keys.table + rows.first * dkp, dkp, rows.count}, {dq_, block.rows, dkp}, true);
      SmallMatmul(d, {tiles_.relative, 1, rows.padded}, {tiles_.q, dkp, block.rows},
                  {d_relative_keys_ + rows.first * dkp, rows.count, dkp}, true);
    }
    if (tiles_.relative_values.table) {
      const RelativeRows rows = tiles_.Collect(task, block, tiles_.scores);
      SmallMatmul(d, {tiles_.relative, 1, rows.padded}, {d_out_, dvp, block.rows},
                  {d_relative_values_ + rows.first * dvp, rows.count, dvp}, true);
    }
  }

  const AttentionBackward<T>& arguments_;
  Scratch<T> scratch_;
  BlockScores<T> tiles_;
  T *values_, *values_t_, *d_out_, *d_scores_, *dq_, *dk_, *dv_, *d_relative_keys_, *d_relative_values_, *d_bias_;
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attune
HWY_AFTER_NAMESPACE();

#endif
