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
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <type_traits>

#include "attune/kernels/cpu/attention/attention_parts.h"
#include "attune/kernels/cpu/attention/attention_tile_inl.h"
#include "attune/kernels/cpu/gemm/bfloat16_tile_product.h"
#include "attune/kernels/cpu/gemm/bfloat16_tiles.h"
#include "attune/kernels/cpu/gemm/small_matmul_inl.h"

HWY_BEFORE_NAMESPACE();
namespace attune {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The queries of one tile: `count` of a sequence, from `first`.
struct QueryTile {
  int64_t first, count;
};

// The keys of one tile: `count` of a sequence, from `first`; rows of scores are padded to `padded` columns.
struct KeyTile {
  int64_t first, count, padded;
};

// Without AMX, shorter sequences take longer to lay out in tiles of bfloat16 than to multiply in float32.
constexpr int64_t kLeastBfloat16Length = 32;

template <class T>
bool IsWorthTiles(const Task<T>& task) {
  return cpu::has_amx_bfloat16() || std::min(task.queries, task.keys) >= kLeastBfloat16Length;
}

// SmallMatmul() of at most 64 rows, in float32 or in tiles of bfloat16.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void Multiply(D d, bool bfloat16_tiles, TileA<T> a, TileB<T> b, TileC<T> c, bool accumulate) {
  if constexpr (std::is_same_v<T, float>) {
    static_assert(kTile <= cpu::kMostTileRows);
    if (bfloat16_tiles) {
      return cpu::bfloat16_tile_product({.a = a.data,
                                         .a_row = a.row,
                                         .a_column = a.column,
                                         .b = b.data,
                                         .b_row = b.row,
                                         .c = c.data,
                                         .m = c.m,
                                         .n = c.n,
                                         .k = b.k,
                                         .accumulate = accumulate});
    }
  }
  SmallMatmul(d, a, b, c, accumulate);
}

// The forward pass. Each tile of keys is laid out once for several tiles of queries. The sums of a tile of queries do
// not depend on the tiles beside it.
template <class T>
class TileForward {
 public:
  TileForward(const AttentionForward<T>& arguments, int64_t lanes)
      : arguments_(arguments),
        lanes_(lanes),
        bfloat16_(arguments.in.bfloat16_tiles && lanes % 16 == 0),
        dvp_(round_up(arguments.in.d_v, lanes)),
        scratch_(kTile * (arguments.in.d_k + dvp_ + kTile) +
                 kTilesOfPart * (kTile * (arguments.in.d_k + dvp_ + 2) + 64)) {
    const AttentionPointers<T>& in = arguments.in;
    keys_t_ = scratch_.take(in.d_k * kTile);
    values_ = scratch_.take(kTile * dvp_);
    scores_ = scratch_.take(kTile * kTile);
    for (HeadTile& tile : tiles_) {
      tile.q = scratch_.take(kTile * in.d_k);
      tile.sums = scratch_.take(kTile * dvp_);
      tile.largest = scratch_.take(kTile);
      tile.total = scratch_.take(kTile);
    }
  }

  void Run(const Task<T>& task, const AttentionForwardPart& part) {
    in_tiles_ = bfloat16_.wanted() && IsWorthTiles(task);
    const auto tiles = std::span(tiles_).first(static_cast<size_t>(part.end - part.begin));
    for (int64_t t = part.begin; t < part.end; ++t) Begin(task, t, tiles[static_cast<size_t>(t - part.begin)]);
    const int64_t key_end = tiles.back().key_end;  // the tile of the last queries, which see the most
    for (int64_t k0 = 0; k0 < key_end; k0 += kTile) {
      const int64_t loaded = std::min(kTile, key_end - k0);
      LoadKeys(task, {k0, loaded, round_up(loaded, lanes_)});
      for (const HeadTile& tile : tiles) {
        const int64_t count = std::min(kTile, tile.key_end - k0);
        if (count > 0) Add(task, tile, {k0, count, round_up(count, lanes_)}, round_up(loaded, lanes_));
      }
    }
    for (const HeadTile& tile : tiles) Finish(task, tile);
  }

 private:
  // A tile of queries of one head, and the state of its rows so far.
  struct HeadTile {
    int64_t head;
    QueryTile queries;
    int64_t key_end;     // of the keys that one of them may see
    T* q;                // [count, d_k]
    T* sums;             // [count, dvp], of exp(score) * value, relative to the row's running maximum
    T *largest, *total;  // [count]
  };

  void Begin(const Task<T>& task, int64_t number, HeadTile& tile) {
    const AttentionPointers<T>& in = task.in;
    const int64_t first = number / task.heads() * kTile, count = std::min(kTile, task.queries - first);
    tile.head = task.first_head + number % task.heads();
    tile.queries = {first, count};
    tile.key_end = task.causal_limit(first + count - 1);
    CopyRows(in.q + (task.q_begin + first) * in.q_row + tile.head * in.d_k, in.q_row, count, in.d_k, in.d_k, tile.q);
    std::fill_n(tile.sums, count * dvp_, T{0});
    std::fill_n(tile.largest, count, -std::numeric_limits<T>::infinity());
    std::fill_n(tile.total, count, T{0});
  }

  void LoadKeys(const Task<T>& task, KeyTile keys) {
    const AttentionPointers<T>& in = task.in;
    const int64_t row = task.k_begin + keys.first;
    CopyTransposed(in.k + row * in.k_row + task.kv_head * in.d_k, in.k_row, keys.count, in.d_k, keys.padded, keys_t_);
    CopyRows(in.v + row * in.v_row + task.kv_head * in.d_v, in.v_row, keys.count, in.d_v, dvp_, values_);
  }

  // `key_stride`: from a row of keys_t_ to the next.
  void Add(const Task<T>& task, const HeadTile& tile, KeyTile keys, int64_t key_stride) {
    const hn::ScalableTag<T> d;
    const int64_t rows = tile.queries.count;
    Multiply(d, in_tiles_, {tile.q, task.in.d_k, 1}, {keys_t_, key_stride, task.in.d_k}, {scores_, rows, keys.padded},
             false);
    for (int64_t i = 0; i < rows; ++i) Exponentiate(task, tile, keys, i);
    Multiply(d, in_tiles_, {scores_, keys.padded, 1}, {values_, dvp_, keys.count}, {tile.sums, rows, dvp_}, true);
  }

  // Row i of the scores becomes exp(score - maximum), with dropout; what was summed up before follows the new maximum.
  void Exponentiate(const Task<T>& task, const HeadTile& tile, KeyTile keys, int64_t i) {
    const hn::ScalableTag<T> d;
    const AttentionPointers<T>& in = task.in;
    const T scale = static_cast<T>(in.scale), minus_infinity = -std::numeric_limits<T>::infinity();
    const int64_t query = tile.queries.first + i;
    T* row = scores_ + i * keys.padded;
    T &largest = tile.largest[i], &total = tile.total[i];
    std::fill(row + keys.count, row + keys.padded, minus_infinity);
    MaskRow(task, query, keys.first, keys.count, row);
    const T most = std::max(largest, MaxRow(d, keys.padded, row) * scale);
    if (most == minus_infinity && !HasNan(row, keys.padded)) {  // nothing may be attended to
      std::fill_n(row, keys.padded, T{0});
      return;
    }
    const T shrink = largest == most ? T{1} : std::exp(largest - most);  // 0 for the first tile
    total = total * shrink + ExpRow(d, scale, most, keys.padded, row);
    largest = most;
    if (keys.first > 0 && shrink != T{1}) {
      for (int64_t c = 0; c < dvp_; ++c) tile.sums[i * dvp_ + c] *= shrink;
    }
    if (!in.dropout.active()) return;
    HWY_ALIGN T factors[kTile];
    KeepFactors(in.dropout, (task.q_begin + query) * in.heads + tile.head, keys.first / kTile, factors);
    for (int64_t j = 0; j < keys.padded; ++j) row[j] *= factors[j];
  }

  void Finish(const Task<T>& task, const HeadTile& tile) {
    const AttentionPointers<T>& in = task.in;
    for (int64_t i = 0; i < tile.queries.count; ++i) {
      const int64_t out_row = (task.q_begin + tile.queries.first + i) * in.heads + tile.head;
      const T total = tile.total[i];
      const bool nothing = total <= 0;
      const T inverse = nothing ? T{0} : T{1} / total;
      for (int64_t c = 0; c < in.d_v; ++c) arguments_.out[out_row * in.d_v + c] = tile.sums[i * dvp_ + c] * inverse;
      // +infinity makes every weight of the backward pass exp(score - infinity) = 0.
      arguments_.log_sum_exp[out_row] =
          nothing ? std::numeric_limits<T>::infinity() : tile.largest[i] + std::log(total);
    }
  }

  const AttentionForward<T>& arguments_;
  const int64_t lanes_;
  const cpu::Bfloat16Tiles bfloat16_;
  bool in_tiles_ = false;  // products of the task
  const int64_t dvp_;
  Scratch<T> scratch_;
  T *keys_t_, *values_, *scores_;
  std::array<HeadTile, kTilesOfPart> tiles_;
};

// Backward of a part of a task. Each tile of queries is laid out once for several tiles of keys. Sums over keys and
// over queries are formed tile after tile in ascending order, whatever the parts.
template <class T>
class TileBackward {
 public:
  TileBackward(const AttentionBackward<T>& arguments, int64_t lanes)
      : arguments_(arguments),
        lanes_(lanes),
        bfloat16_(arguments.in.bfloat16_tiles && lanes % 16 == 0),
        dkp_(round_up(arguments.in.d_k, lanes)),
        dvp_(round_up(arguments.in.d_v, lanes)),
        scratch_(kTile * (2 * dkp_ + dvp_ + 2 * kTile + kTilesOfPart * (3 * dkp_ + 2 * dvp_)) + 1024) {
    q_ = scratch_.take(kTile * dkp_);
    dq_ = scratch_.take(kTile * dkp_);
    d_out_ = scratch_.take(kTile * dvp_);
    weights_ = scratch_.take(kTile * kTile);
    d_scores_ = scratch_.take(kTile * kTile);
    for (HeldKeys& held : held_) {
      held.rows = scratch_.take(kTile * dkp_);
      held.transposed = scratch_.take(kTile * dkp_);
      held.values_t = scratch_.take(kTile * dvp_);
      held.dk = scratch_.take(kTile * dkp_);
      held.dv = scratch_.take(kTile * dvp_);
    }
  }

  void Run(const Task<T>& task, const AttentionBackwardPart& part) {
    in_tiles_ = bfloat16_.wanted() && IsWorthTiles(task);
    const int64_t query_begin = part.queries.begin * kTile;
    const int64_t query_end = std::min(part.queries.end * kTile, task.queries);
    if (part.wants_dq) ClearQueryGradients(task, query_begin, query_end, arguments_.dq);
    const int64_t key_end = std::min(part.keys.end * kTile, task.keys);
    for (int64_t tile = part.keys.begin; tile * kTile < key_end; tile += kTilesOfPart) {
      if (!part.wants_dk_dv && task.causal_limit(query_end - 1) <= tile * kTile) return;
      const std::span<const HeldKeys> held = LoadKeys(task, tile * kTile, key_end);
      for (int64_t head = task.first_head; head < task.last_head; ++head) {
        for (int64_t q0 = query_begin; q0 < query_end; q0 += kTile)
          AddQueries(task, part, head, {q0, std::min(kTile, query_end - q0)}, held);
      }
      if (part.wants_dk_dv) StoreKeyGradients(task, held);
    }
  }

 private:
  // A tile of keys and their values, and the sums of their gradients so far.
  struct HeldKeys {
    KeyTile keys;
    T *rows, *transposed;  // of the keys
    T* values_t;
    T *dk, *dv;
  };

  // The tiles from key `begin` on, at most kTilesOfPart.
  std::span<const HeldKeys> LoadKeys(const Task<T>& task, int64_t begin, int64_t end) {
    const AttentionPointers<T>& in = task.in;
    size_t loaded = 0;
    for (int64_t k0 = begin; k0 < end && loaded < held_.size(); k0 += kTile) {
      const int64_t count = std::min(kTile, end - k0), row = task.k_begin + k0;
      HeldKeys& held = held_[loaded++];
      held.keys = {k0, count, round_up(count, lanes_)};
      const T* k = in.k + row * in.k_row + task.kv_head * in.d_k;
      const T* v = in.v + row * in.v_row + task.kv_head * in.d_v;
      CopyRows(k, in.k_row, count, in.d_k, dkp_, held.rows);
      CopyTransposed(k, in.k_row, count, in.d_k, held.keys.padded, held.transposed);
      CopyTransposed(v, in.v_row, count, in.d_v, held.keys.padded, held.values_t);
      std::fill_n(held.dk, count * dkp_, T{0});
      std::fill_n(held.dv, count * dvp_, T{0});
    }
    return std::span(held_).first(loaded);
  }

  // One tile of queries by the tiles of keys: dk and dv are summed in their tiles, dq is added to the output.
  void AddQueries(const Task<T>& task, const AttentionBackwardPart& part, int64_t head, QueryTile queries,
                  std::span<const HeldKeys> tiles) {
    const AttentionPointers<T>& in = task.in;
    const int64_t limit = task.causal_limit(queries.first + queries.count - 1);
    if (limit <= tiles.front().keys.first) return;
    const int64_t q_row = task.q_begin + queries.first, o_stride = in.heads * in.d_v;
    CopyRows(in.q + q_row * in.q_row + head * in.d_k, in.q_row, queries.count, in.d_k, dkp_, q_);
    CopyRows(arguments_.d_out + q_row * o_stride + head * in.d_v, o_stride, queries.count, in.d_v, dvp_, d_out_);
    for (const HeldKeys& held : tiles) {
      if (held.keys.first < limit) Add(task, part, head, queries, held, &held != tiles.data());
    }
    if (!part.wants_dq) return;
    for (int64_t i = 0; i < queries.count; ++i) {
      T* out = arguments_.dq + (q_row + i) * in.q_row + head * in.d_k;
      for (int64_t c = 0; c < in.d_k; ++c) out[c] += dq_[i * dkp_ + c];
    }
  }

  // `add_dq`: dq_ has a sum already.
  void Add(const Task<T>& task, const AttentionBackwardPart& part, int64_t head, QueryTile queries,
           const HeldKeys& held, bool add_dq) {
    const hn::ScalableTag<T> d;
    const KeyTile& keys = held.keys;
    ComputeScores(task, head, queries, held);
    if (part.wants_dk_dv) {
      Multiply(d, in_tiles_, {weights_, 1, keys.padded}, {d_out_, dvp_, queries.count}, {held.dv, keys.count, dvp_},
               true);
      Multiply(d, in_tiles_, {d_scores_, 1, keys.padded}, {q_, dkp_, queries.count}, {held.dk, keys.count, dkp_}, true);
    }
    if (part.wants_dq)
      Multiply(d, in_tiles_, {d_scores_, keys.padded, 1}, {held.rows, dkp_, keys.count}, {dq_, queries.count, dkp_},
               add_dq);
  }

  // weights_ = softmax weights of a tile (formed again from log_sum_exp), then with dropout for dv; d_scores_ = the
  // gradient of the scores: w * (dropout(d_out v^T) - sum(d_out * out)) * scale.
  void ComputeScores(const Task<T>& task, int64_t head, QueryTile queries, const HeldKeys& held) {
    const hn::ScalableTag<T> d;
    const AttentionPointers<T>& in = task.in;
    const KeyTile& keys = held.keys;
    Multiply(d, in_tiles_, {q_, dkp_, 1}, {held.transposed, keys.padded, in.d_k},
             {weights_, queries.count, keys.padded}, false);
    Multiply(d, in_tiles_, {d_out_, dvp_, 1}, {held.values_t, keys.padded, in.d_v},
             {d_scores_, queries.count, keys.padded}, false);
    for (int64_t i = 0; i < queries.count; ++i) {
      const int64_t query = queries.first + i, row = (task.q_begin + query) * in.heads + head;
      T* w = weights_ + i * keys.padded;
      std::fill(w + keys.count, w + keys.padded, -std::numeric_limits<T>::infinity());
      MaskRow(task, query, keys.first, keys.count, w);
      ExpRow(d, static_cast<T>(in.scale), arguments_.log_sum_exp[row], keys.padded, w);
      ScoreGradients(d, in, {row, keys.first / kTile, keys.padded}, arguments_.dots[row], w,
                     d_scores_ + i * keys.padded);
    }
  }

  void StoreKeyGradients(const Task<T>& task, std::span<const HeldKeys> tiles) {
    const AttentionPointers<T>& in = task.in;
    for (const HeldKeys& held : tiles) {
      for (int64_t j = 0; j < held.keys.count; ++j) {
        const int64_t row = task.k_begin + held.keys.first + j;
        std::copy_n(held.dk + j * dkp_, in.d_k, arguments_.dk + row * in.k_row + task.kv_head * in.d_k);
        std::copy_n(held.dv + j * dvp_, in.d_v, arguments_.dv + row * in.v_row + task.kv_head * in.d_v);
      }
    }
  }

  const AttentionBackward<T>& arguments_;
  const int64_t lanes_;
  const cpu::Bfloat16Tiles bfloat16_;
  bool in_tiles_ = false;  // products of the task
  const int64_t dkp_, dvp_;
  Scratch<T> scratch_;
  T *q_, *dq_, *d_out_, *weights_, *d_scores_;
  std::array<HeldKeys, kTilesOfPart> held_;
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attune
HWY_AFTER_NAMESPACE();

#endif
