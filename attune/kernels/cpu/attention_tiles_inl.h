// Attention over every tile of queries and keys: no pattern, and scores of q k^T alone. Included once for each target
// (Highway).

#if defined(ATTUNE_KERNELS_ATTENTION_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTUNE_KERNELS_ATTENTION_TILES_INL_H_
#undef ATTUNE_KERNELS_ATTENTION_TILES_INL_H_
#else
#define ATTUNE_KERNELS_ATTENTION_TILES_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "attune/kernels/cpu/attention_tile_inl.h"
#include "attune/kernels/cpu/gemm/small_matmul_inl.h"

HWY_BEFORE_NAMESPACE();
namespace attune {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
void ForwardHead(const Task<T>& task, int64_t head, const AttentionForward<T>& arguments, Scratch<T> scratch) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const AttentionPointers<T>& in = task.in;
  const int64_t dvp = RoundUp(in.d_v, lanes);
  const int64_t q_stride = in.q_row, k_stride = in.k_row, v_stride = in.v_row;
  T* keys_t = scratch.take(in.d_k * kTile);
  T* values = scratch.take(kTile * dvp);
  T* scores = scratch.take(kTile * kTile);
  T* sums = scratch.take(kTile * dvp);  // of exp(score) * value, relative to the row's running maximum
  HWY_ALIGN T factors[kTile];
  const T scale = static_cast<T>(in.scale);
  const T minus_infinity = -std::numeric_limits<T>::infinity();

  for (int64_t q0 = 0; q0 < task.queries; q0 += kTile) {
    const int64_t rows = std::min(kTile, task.queries - q0);
    const T* q = in.q + (task.q_begin + q0) * q_stride + head * in.d_k;
    T largest[kTile], total[kTile];
    std::fill_n(largest, rows, minus_infinity);
    std::fill_n(total, rows, T{0});
    std::fill_n(sums, rows * dvp, T{0});
    const int64_t key_end = task.causal_limit(q0 + rows - 1);
    for (int64_t k0 = 0; k0 < key_end; k0 += kTile) {
      const int64_t columns = std::min(kTile, key_end - k0);
      const int64_t padded = RoundUp(columns, lanes);
      CopyTransposed(in.k + (task.k_begin + k0) * k_stride + task.kv_head * in.d_k, k_stride, columns, in.d_k, padded,
                     keys_t);
      CopyRows(in.v + (task.k_begin + k0) * v_stride + task.kv_head * in.d_v, v_stride, columns, in.d_v, dvp, values);
      SmallMatmul(d, {q, q_stride, 1}, {keys_t, padded, in.d_k}, {scores, rows, padded}, false);
      for (int64_t i = 0; i < rows; ++i) {
        T* row = scores + i * padded;
        std::fill(row + columns, row + padded, minus_infinity);
        MaskRow(task, q0 + i, k0, columns, row);
        const T most = std::max(largest[i], MaxRow(d, padded, row) * scale);
        if (most == minus_infinity && !HasNan(row, padded)) {  // nothing may be attended to
          std::fill_n(row, padded, T{0});
          continue;
        }
        const T shrink = std::exp(largest[i] - most);  // 0 for the first tile
        total[i] = total[i] * shrink + ExpRow(d, scale, most, padded, row);
        largest[i] = most;
        if (k0 > 0 && shrink != T{1}) {
          for (int64_t c = 0; c < dvp; ++c) sums[i * dvp + c] *= shrink;
        }
        if (in.dropout.active()) {
          KeepFactors(in.dropout, (task.q_begin + q0 + i) * in.heads + head, k0 / kTile, factors);
          for (int64_t j = 0; j < padded; ++j) row[j] *= factors[j];
        }
      }
      SmallMatmul(d, {scores, padded, 1}, {values, dvp, columns}, {sums, rows, dvp}, true);
    }
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t out_row = (task.q_begin + q0 + i) * in.heads + head;
      const bool nothing = total[i] <= 0;
      const T inverse = nothing ? T{0} : T{1} / total[i];
      for (int64_t c = 0; c < in.d_v; ++c) arguments.out[out_row * in.d_v + c] = sums[i * dvp + c] * inverse;
      // +infinity makes every weight of the backward pass exp(score - infinity) = 0.
      arguments.log_sum_exp[out_row] = nothing ? -minus_infinity : largest[i] + std::log(total[i]);
    }
  }
}

// The tiles of one backward task.
template <class T>
struct BackwardTiles {
  int64_t dkp, dvp;
  T *q, *d_out, *keys, *keys_t, *values_t, *weights, *d_scores, *dq, *dk, *dv, *row_dots;

  static int64_t elements(const AttentionPointers<T>& in, int64_t lanes, int64_t most_queries) {
    const int64_t dkp = RoundUp(in.d_k, lanes), dvp = RoundUp(in.d_v, lanes);
    return kTile * (5 * dkp + 3 * dvp + 2 * kTile) + RoundUp(most_queries, 64) + 1024;
  }
  BackwardTiles(const AttentionPointers<T>& in, int64_t lanes, int64_t most_queries, Scratch<T> scratch)
      : dkp(RoundUp(in.d_k, lanes)), dvp(RoundUp(in.d_v, lanes)) {
    q = scratch.take(kTile * dkp);
    keys = scratch.take(kTile * dkp);
    keys_t = scratch.take(kTile * dkp);
    dq = scratch.take(kTile * dkp);
    dk = scratch.take(kTile * dkp);
    d_out = scratch.take(kTile * dvp);
    values_t = scratch.take(kTile * dvp);
    dv = scratch.take(kTile * dvp);
    weights = scratch.take(kTile * kTile);
    d_scores = scratch.take(kTile * kTile);
    row_dots = scratch.take(most_queries);
  }
};

// The queries of one tile: `count` of a sequence, from `first`.
struct QueryTile {
  int64_t first, count;
};

// The keys of one tile: `count` of a sequence, from `first`; rows of scores are padded to `padded` columns.
struct KeyTile {
  int64_t first, count, padded;
};

// weights = softmax weights of a tile (formed again from log_sum_exp), then with dropout for dv; d_scores = the
// gradient of the scores: w * (dropout(d_out v^T) - sum(d_out * out)) * scale.
template <class T>
void BackwardScores(const Task<T>& task, const AttentionBackward<T>& arguments, int64_t head, QueryTile queries,
                    KeyTile keys, BackwardTiles<T>& tiles) {
  const hn::ScalableTag<T> d;
  const AttentionPointers<T>& in = task.in;
  SmallMatmul(d, {tiles.q, tiles.dkp, 1}, {tiles.keys_t, keys.padded, in.d_k},
              {tiles.weights, queries.count, keys.padded}, false);
  SmallMatmul(d, {tiles.d_out, tiles.dvp, 1}, {tiles.values_t, keys.padded, in.d_v},
              {tiles.d_scores, queries.count, keys.padded}, false);
  for (int64_t i = 0; i < queries.count; ++i) {
    const int64_t query = queries.first + i, row = (task.q_begin + query) * in.heads + head;
    T* w = tiles.weights + i * keys.padded;
    std::fill(w + keys.count, w + keys.padded, -std::numeric_limits<T>::infinity());
    MaskRow(task, query, keys.first, keys.count, w);
    ExpRow(d, static_cast<T>(in.scale), arguments.log_sum_exp[row], keys.padded, w);
    ScoreGradients(d, in, {row, keys.first / kTile, keys.padded}, tiles.row_dots[query], w,
                   tiles.d_scores + i * keys.padded);
  }
}

template <class T>
void RowDots(const Task<T>& task, const AttentionBackward<T>& arguments, int64_t head, T* dots) {
  const int64_t d_v = task.in.d_v;
  for (int64_t i = 0; i < task.queries; ++i) {
    const int64_t at = ((task.q_begin + i) * task.in.heads + head) * d_v;
    dots[i] = Dot(hn::ScalableTag<T>(), arguments.out + at, arguments.d_out + at, d_v);
  }
}

// One tile of keys against all queries of one head: dk and dv gather in the tiles, dq is added to the output.
template <class T>
void BackwardKeyTile(const Task<T>& task, const AttentionBackward<T>& arguments, int64_t head, KeyTile keys,
                     BackwardTiles<T>& tiles) {
  const hn::ScalableTag<T> d;
  const AttentionPointers<T>& in = task.in;
  const int64_t q_stride = in.q_row, o_stride = in.heads * in.d_v;
  for (int64_t first = 0; first < task.queries; first += kTile) {
    const QueryTile queries{first, std::min(kTile, task.queries - first)};
    if (task.causal_limit(first + queries.count - 1) <= keys.first) continue;
    const int64_t q_row = task.q_begin + first;
    CopyRows(in.q + q_row * q_stride + head * in.d_k, q_stride, queries.count, in.d_k, tiles.dkp, tiles.q);
    CopyRows(arguments.d_out + q_row * o_stride + head * in.d_v, o_stride, queries.count, in.d_v, tiles.dvp,
             tiles.d_out);
    BackwardScores(task, arguments, head, queries, keys, tiles);
    SmallMatmul(d, {tiles.weights, 1, keys.padded}, {tiles.d_out, tiles.dvp, queries.count},
                {tiles.dv, keys.count, tiles.dvp}, true);
    SmallMatmul(d, {tiles.d_scores, 1, keys.padded}, {tiles.q, tiles.dkp, queries.count},
                {tiles.dk, keys.count, tiles.dkp}, true);
    SmallMatmul(d, {tiles.d_scores, keys.padded, 1}, {tiles.keys, tiles.dkp, keys.count},
                {tiles.dq, queries.count, tiles.dkp}, false);
    for (int64_t i = 0; i < queries.count; ++i) {
      T* out = arguments.dq + (q_row + i) * q_stride + head * in.d_k;
      for (int64_t c = 0; c < in.d_k; ++c) out[c] += tiles.dq[i * tiles.dkp + c];
    }
  }
}

template <class T>
void BackwardTask(const Task<T>& task, const AttentionBackward<T>& arguments, BackwardTiles<T>& tiles) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const AttentionPointers<T>& in = task.in;
  const int64_t q_stride = in.q_row, k_stride = in.k_row, v_stride = in.v_row;
  for (int64_t i = 0; i < task.queries; ++i) {
    for (int64_t h = task.first_head(); h < task.last_head(); ++h)
      std::fill_n(arguments.dq + (task.q_begin + i) * q_stride + h * in.d_k, in.d_k, T{0});
  }
  for (int64_t k0 = 0; k0 < task.keys; k0 += kTile) {
    const int64_t columns = std::min(kTile, task.keys - k0);
    const int64_t padded = RoundUp(columns, lanes);
    const T* k = in.k + (task.k_begin + k0) * k_stride + task.kv_head * in.d_k;
    const T* v = in.v + (task.k_begin + k0) * v_stride + task.kv_head * in.d_v;
    CopyRows(k, k_stride, columns, in.d_k, tiles.dkp, tiles.keys);
    CopyTransposed(k, k_stride, columns, in.d_k, padded, tiles.keys_t);
    CopyTransposed(v, v_stride, columns, in.d_v, padded, tiles.values_t);
    std::fill_n(tiles.dk, columns * tiles.dkp, T{0});
    std::fill_n(tiles.dv, columns * tiles.dvp, T{0});
    for (int64_t head = task.first_head(); head < task.last_head(); ++head) {
      RowDots(task, arguments, head, tiles.row_dots);
      BackwardKeyTile(task, arguments, head, {k0, columns, padded}, tiles);
    }
    for (int64_t j = 0; j < columns; ++j) {
      std::copy_n(tiles.dk + j * tiles.dkp, in.d_k,
                  arguments.dk + (task.k_begin + k0 + j) * k_stride + task.kv_head * in.d_k);
      std::copy_n(tiles.dv + j * tiles.dvp, in.d_v,
                  arguments.dv + (task.k_begin + k0 + j) * v_stride + task.kv_head * in.d_v);
    }
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attune
HWY_AFTER_NAMESPACE();

#endif
