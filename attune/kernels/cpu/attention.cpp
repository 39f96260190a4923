#include "attune/kernels/attention.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attune/kernels/cpu/attention.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "attune/base/parallel.h"
#include "attune/kernels/cpu/attention_blocks_inl.h"
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
  const AttentionInputs<T>& in = task.in;
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
      PackTransposed(in.k + (task.k_begin + k0) * k_stride + task.kv_head * in.d_k, k_stride, columns, in.d_k, padded,
                     keys_t);
      PackRows(in.v + (task.k_begin + k0) * v_stride + task.kv_head * in.d_v, v_stride, columns, in.d_v, dvp, values);
      SmallMatmul(d, {q, q_stride, 1}, keys_t, padded, scores, padded, rows, padded, in.d_k, false);
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
      SmallMatmul(d, {scores, padded, 1}, values, dvp, sums, dvp, rows, dvp, columns, true);
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

  static int64_t elements(const AttentionInputs<T>& in, int64_t lanes, int64_t most_queries) {
    const int64_t dkp = RoundUp(in.d_k, lanes), dvp = RoundUp(in.d_v, lanes);
    return kTile * (5 * dkp + 3 * dvp + 2 * kTile) + RoundUp(most_queries, 64) + 1024;
  }
  BackwardTiles(const AttentionInputs<T>& in, int64_t lanes, int64_t most_queries, Scratch<T> scratch)
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

// weights = softmax weights of a tile (formed again from log_sum_exp), then with dropout for dv; d_scores = the
// gradient of the scores: w * (dropout(d_out v^T) - sum(d_out * out)) * scale.
template <class T>
void BackwardScores(const Task<T>& task, const AttentionBackward<T>& arguments, int64_t head, int64_t q0, int64_t rows,
                    int64_t k0, int64_t columns, int64_t padded, BackwardTiles<T>& tiles) {
  const hn::ScalableTag<T> d;
  const AttentionInputs<T>& in = task.in;
  SmallMatmul(d, {tiles.q, tiles.dkp, 1}, tiles.keys_t, padded, tiles.weights, padded, rows, padded, in.d_k, false);
  SmallMatmul(d, {tiles.d_out, tiles.dvp, 1}, tiles.values_t, padded, tiles.d_scores, padded, rows, padded, in.d_v,
              false);
  for (int64_t i = 0; i < rows; ++i) {
    T* w = tiles.weights + i * padded;
    const int64_t row = (task.q_begin + q0 + i) * in.heads + head;
    std::fill(w + columns, w + padded, -std::numeric_limits<T>::infinity());
    MaskRow(task, q0 + i, k0, columns, w);
    ExpRow(d, static_cast<T>(in.scale), arguments.log_sum_exp[row], padded, w);
    ScoreGradients(d, in, row, k0 / kTile, tiles.row_dots[q0 + i], padded, w, tiles.d_scores + i * padded);
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
void BackwardKeyTile(const Task<T>& task, const AttentionBackward<T>& arguments, int64_t head, int64_t k0,
                     int64_t columns, int64_t padded, BackwardTiles<T>& tiles) {
  const hn::ScalableTag<T> d;
  const AttentionInputs<T>& in = task.in;
  const int64_t q_stride = in.q_row, o_stride = in.heads * in.d_v;
  for (int64_t q0 = 0; q0 < task.queries; q0 += kTile) {
    const int64_t rows = std::min(kTile, task.queries - q0);
    if (task.causal_limit(q0 + rows - 1) <= k0) continue;
    const int64_t q_row = task.q_begin + q0;
    PackRows(in.q + q_row * q_stride + head * in.d_k, q_stride, rows, in.d_k, tiles.dkp, tiles.q);
    PackRows(arguments.d_out + q_row * o_stride + head * in.d_v, o_stride, rows, in.d_v, tiles.dvp, tiles.d_out);
    BackwardScores(task, arguments, head, q0, rows, k0, columns, padded, tiles);
    SmallMatmul(d, {tiles.weights, 1, padded}, tiles.d_out, tiles.dvp, tiles.dv, tiles.dvp, columns, tiles.dvp, rows,
                true);
    SmallMatmul(d, {tiles.d_scores, 1, padded}, tiles.q, tiles.dkp, tiles.dk, tiles.dkp, columns, tiles.dkp, rows,
                true);
    SmallMatmul(d, {tiles.d_scores, padded, 1}, tiles.keys, tiles.dkp, tiles.dq, tiles.dkp, rows, tiles.dkp, columns,
                false);
    for (int64_t i = 0; i < rows; ++i) {
      T* out = arguments.dq + (q_row + i) * q_stride + head * in.d_k;
      for (int64_t c = 0; c < in.d_k; ++c) out[c] += tiles.dq[i * tiles.dkp + c];
    }
  }
}

template <class T>
void BackwardTask(const Task<T>& task, const AttentionBackward<T>& arguments, BackwardTiles<T>& tiles) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const AttentionInputs<T>& in = task.in;
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
    PackRows(k, k_stride, columns, in.d_k, tiles.dkp, tiles.keys);
    PackTransposed(k, k_stride, columns, in.d_k, padded, tiles.keys_t);
    PackTransposed(v, v_stride, columns, in.d_v, padded, tiles.values_t);
    std::fill_n(tiles.dk, columns * tiles.dkp, T{0});
    std::fill_n(tiles.dv, columns * tiles.dvp, T{0});
    for (int64_t head = task.first_head(); head < task.last_head(); ++head) {
      RowDots(task, arguments, head, tiles.row_dots);
      BackwardKeyTile(task, arguments, head, k0, columns, padded, tiles);
    }
    for (int64_t j = 0; j < columns; ++j) {
      std::copy_n(tiles.dk + j * tiles.dkp, in.d_k,
                  arguments.dk + (task.k_begin + k0 + j) * k_stride + task.kv_head * in.d_k);
      std::copy_n(tiles.dv + j * tiles.dvp, in.d_v,
                  arguments.dv + (task.k_begin + k0 + j) * v_stride + task.kv_head * in.d_v);
    }
  }
}

template <class T>
int64_t MostQueries(const AttentionInputs<T>& in, int64_t begin, int64_t end) {
  int64_t most = 0;
  for (int64_t index = begin; index < end; ++index) most = std::max(most, Task<T>(in, index).queries);
  return most;
}

template <class T>
void Forward(const AttentionForward<T>& arguments, int64_t begin, int64_t end) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const AttentionInputs<T>& in = arguments.in;
  if (!in.plain()) {
    BlockForward<T> forward(arguments, lanes, MostQueries(in, begin, end));
    for (int64_t index = begin; index < end; ++index) forward.Run(Task<T>(in, index));
    return;
  }
  const Scratch<T> scratch(kTile * (in.d_k + 2 * RoundUp(in.d_v, lanes) + kTile));
  for (int64_t index = begin; index < end; ++index) {
    const Task<T> task(in, index);
    for (int64_t head = task.first_head(); head < task.last_head(); ++head) ForwardHead(task, head, arguments, scratch);
  }
}

// d_relative_keys and d_relative_values: what these tasks add to the gradients of the tables.
template <class T>
void Backward(const AttentionBackward<T>& arguments, int64_t begin, int64_t end, T* d_relative_keys,
              T* d_relative_values) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const AttentionInputs<T>& in = arguments.in;
  const int64_t most_queries = MostQueries(in, begin, end);
  if (!in.plain()) {
    BlockBackward<T> backward(arguments, lanes, most_queries);
    for (int64_t index = begin; index < end; ++index) backward.Run(Task<T>(in, index));
    backward.StoreRelative(d_relative_keys, d_relative_values);
    return;
  }
  const Scratch<T> scratch(BackwardTiles<T>::elements(in, lanes, most_queries));
  BackwardTiles<T> tiles(in, lanes, most_queries, scratch);
  for (int64_t index = begin; index < end; ++index) BackwardTask(Task<T>(in, index), arguments, tiles);
}

void ForwardF32(const AttentionForward<float>& a, int64_t begin, int64_t end) {
  Forward(a, begin, end);
}
void ForwardF64(const AttentionForward<double>& a, int64_t begin, int64_t end) {
  Forward(a, begin, end);
}
void BackwardF32(const AttentionBackward<float>& a, int64_t begin, int64_t end, float* d_keys, float* d_values) {
  Backward(a, begin, end, d_keys, d_values);
}
void BackwardF64(const AttentionBackward<double>& a, int64_t begin, int64_t end, double* d_keys, double* d_values) {
  Backward(a, begin, end, d_keys, d_values);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attune
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attune {

HWY_EXPORT(ForwardF32);
HWY_EXPORT(ForwardF64);
HWY_EXPORT(BackwardF32);
HWY_EXPORT(BackwardF64);

namespace {

// Tasks are independent, so that how they are grouped changes no result; a group amortises its scratch memory.
template <class T, class Run>
void for_each_task(const AttentionInputs<T>& in, Run&& run) {
  const int64_t tasks = in.sequences * in.kv_heads;
  parallel_for(tasks, std::clamp<int64_t>(tasks / 64, 1, 16), run);
}

// run(begin, end, d_keys, d_values) over groups of tasks, at most 64 of them: each has tables of its own, which are
// added in the order of the groups, so that neither depends on the number of threads.
template <class T, class Run>
void backward_with_tables(const AttentionBackward<T>& arguments, Run&& run) {
  const AttentionInputs<T>& in = arguments.in;
  const int64_t tasks = in.sequences * in.kv_heads, grain = std::max<int64_t>((tasks + 63) / 64, 1);
  const int64_t keys_size = in.relative_keys ? (2 * in.clip + 1) * in.d_k : 0;
  const int64_t values_size = in.relative_values ? (2 * in.clip + 1) * in.d_v : 0;
  const int64_t groups = (tasks + grain - 1) / grain, size = keys_size + values_size;
  const auto buffer = allocate_buffer(static_cast<size_t>(groups * size) * sizeof(T));
  T* tables = static_cast<T*>(buffer->data());
  parallel_for(tasks, grain, [&](int64_t begin, int64_t end) {
    T* own = tables + begin / grain * size;
    run(begin, end, own, own + keys_size);
  });
  const auto add_up = [&](T* to, int64_t count, int64_t at) {
    for (int64_t i = 0; i < count; ++i) {
      to[i] = 0;
      for (int64_t g = 0; g < groups; ++g) to[i] += tables[g * size + at + i];
    }
  };
  add_up(arguments.d_relative_keys, keys_size, 0);
  add_up(arguments.d_relative_values, values_size, keys_size);
}

template <class T, class Run>
void run_backward(const AttentionBackward<T>& arguments, Run&& run) {
  if (arguments.in.relative_keys || arguments.in.relative_values) {
    backward_with_tables(arguments, run);
  } else {
    for_each_task(arguments.in, [&](int64_t begin, int64_t end) { run(begin, end, nullptr, nullptr); });
  }
}

// The scaled score of one pair, with every term; i and j are indices within sequence s.
template <class T>
T score(const AttentionInputs<T>& in, const AttentionSpan& span, const T* q, const T* k, int64_t head, int64_t i,
        int64_t j) {
  const int64_t distance = j - span.place(i);
  const T* a =
      in.relative_keys ? in.relative_keys + (std::clamp(distance, -in.clip, in.clip) + in.clip) * in.d_k : nullptr;
  T sum = 0;
  for (int64_t c = 0; c < in.d_k; ++c) sum += q[c] * (a ? k[c] + a[c] : k[c]);
  const double slope = in.slopes.empty() ? 0 : in.slopes[static_cast<size_t>(head)];
  return sum * static_cast<T>(in.scale) - static_cast<T>(slope * static_cast<double>(std::abs(distance)));
}

}  // namespace

void attention_forward(Cpu, const AttentionForward<float>& arguments) {
  for_each_task(arguments.in, [&](int64_t b, int64_t e) { HWY_DYNAMIC_DISPATCH(ForwardF32)(arguments, b, e); });
}
void attention_forward(Cpu, const AttentionForward<double>& arguments) {
  for_each_task(arguments.in, [&](int64_t b, int64_t e) { HWY_DYNAMIC_DISPATCH(ForwardF64)(arguments, b, e); });
}
void attention_backward(Cpu, const AttentionBackward<float>& arguments) {
  run_backward(arguments, [&](int64_t b, int64_t e, float* d_keys, float* d_values) {
    HWY_DYNAMIC_DISPATCH(BackwardF32)(arguments, b, e, d_keys, d_values);
  });
}
void attention_backward(Cpu, const AttentionBackward<double>& arguments) {
  run_backward(arguments, [&](int64_t b, int64_t e, double* d_keys, double* d_values) {
    HWY_DYNAMIC_DISPATCH(BackwardF64)(arguments, b, e, d_keys, d_values);
  });
}

template <class T>
void attention_weights(Cpu, const AttentionInputs<T>& in, const T* log_sum_exp, T* weights, int64_t most_queries,
                       int64_t most_keys) {
  const int64_t group = in.heads / in.kv_heads;
  for (int64_t s = 0; s < in.sequences; ++s) {
    const int64_t q_begin = in.query_offsets[s], queries = in.query_offsets[s + 1] - q_begin;
    const int64_t k_begin = in.key_offsets[s], keys = in.key_offsets[s + 1] - k_begin;
    const AttentionSpan span{queries, keys, in.causal};
    for (int64_t h = 0; h < in.heads; ++h) {
      for (int64_t i = 0; i < queries; ++i) {
        const int64_t visible = in.causal ? std::clamp<int64_t>(span.place(i) + 1, 0, keys) : keys;
        const uint8_t* mask =
            in.mask ? in.mask + ((in.mask_sequences == 1 ? 0 : s) * in.mask_queries + i) * in.mask_keys : nullptr;
        const int64_t q_row = (q_begin + i) * in.heads + h;
        const T* q = in.q + (q_begin + i) * in.q_row + h * in.d_k;
        T* out = weights + ((s * in.heads + h) * most_queries + i) * most_keys;
        for (int64_t j = 0; j < visible; ++j) {
          if ((mask && mask[j] == 0) || !allows(in.pattern, span.place(i), j)) continue;
          const T* k = in.k + (k_begin + j) * in.k_row + h / group * in.d_k;
          out[j] = std::exp(score(in, span, q, k, h, i, j) - log_sum_exp[q_row]);
        }
      }
    }
  }
}
template void attention_weights<float>(Cpu, const AttentionInputs<float>&, const float*, float*, int64_t, int64_t);
template void attention_weights<double>(Cpu, const AttentionInputs<double>&, const double*, double*, int64_t, int64_t);

}  // namespace attune
#endif  // HWY_ONCE
