#include "attune/ops/attention_kernel.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attune/ops/attention_cpu.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on
#include <algorithm>
#include <cmath>
#include <limits>

#include "attune/base/parallel.h"
#include "attune/ops/dropout_inl.h"
#include "attune/ops/math_inl.h"
#include "attune/ops/small_matmul_inl.h"
#include "attune/tensor/buffer.h"

HWY_BEFORE_NAMESPACE();
namespace attune {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A tile is kTile queries by kTile keys, so that scores, keys and values stay in the first-level cache. A tile of keys
// is also one column group of the dropout mask.
constexpr int64_t kTile = 64;

inline int64_t RoundUp(int64_t n, int64_t to) {
  return (n + to - 1) / to * to;
}

// One sequence and one key head, with everything that a tile needs to find its data.
template <class T>
struct Task {
  const AttentionInputs<T>& in;
  int64_t sequence, kv_head;
  int64_t q_begin, queries, k_begin, keys;

  Task(const AttentionInputs<T>& inputs, int64_t index)
      : in(inputs),
        sequence(index / inputs.kv_heads),
        kv_head(index % inputs.kv_heads),
        q_begin(inputs.query_offsets[sequence]),
        queries(inputs.query_offsets[sequence + 1] - q_begin),
        k_begin(inputs.key_offsets[sequence]),
        keys(inputs.key_offsets[sequence + 1] - k_begin) {}

  int64_t first_head() const { return kv_head * (in.heads / in.kv_heads); }
  int64_t last_head() const { return (kv_head + 1) * (in.heads / in.kv_heads); }
  /// Keys [0, limit) of the sequence may be seen by query i, as far as the causal rule goes.
  int64_t causal_limit(int64_t i) const {
    return in.causal ? std::clamp<int64_t>(i + 1 + keys - queries, 0, keys) : keys;
  }
  const uint8_t* mask_row(int64_t i) const {
    if (in.mask == nullptr) return nullptr;
    const int64_t block = in.mask_sequences == 1 ? 0 : sequence;
    return in.mask + (block * in.mask_queries + i) * in.mask_keys;
  }
};

// Bump allocation of one thread's tiles from one pooled buffer.
template <class T>
class Scratch {
 public:
  explicit Scratch(int64_t elements) : buffer_(allocate_buffer(static_cast<size_t>(elements + 256) * sizeof(T))) {}
  T* take(int64_t elements) {
    T* data = static_cast<T*>(buffer_->data()) + used_;
    used_ += RoundUp(elements, 64 / static_cast<int64_t>(sizeof(T)));
    return data;
  }

 private:
  std::shared_ptr<Buffer> buffer_;
  int64_t used_ = 0;
};

// rows x width into rows of `padded`, the rest of each row zero.
template <class T>
void PackRows(const T* from, int64_t stride, int64_t rows, int64_t width, int64_t padded, T* to) {
  for (int64_t i = 0; i < rows; ++i) {
    std::copy_n(from + i * stride, width, to + i * padded);
    std::fill(to + i * padded + width, to + (i + 1) * padded, T{0});
  }
}

// The transpose of rows x width: width rows of `padded` elements, zero beyond `rows`. Eight rows at a time, so that
// each cache line that is written is filled before it is left.
template <class T>
void PackTransposed(const T* from, int64_t stride, int64_t rows, int64_t width, int64_t padded, T* HWY_RESTRICT to) {
  int64_t i = 0;
  for (; i + 8 <= rows; i += 8) {
    const T* HWY_RESTRICT r = from + i * stride;
    for (int64_t c = 0; c < width; ++c) {
      T* HWY_RESTRICT out = to + c * padded + i;
      for (int64_t u = 0; u < 8; ++u) out[u] = r[u * stride + c];
    }
  }
  for (; i < padded; ++i) {
    for (int64_t c = 0; c < width; ++c) to[c * padded + i] = i < rows ? from[i * stride + c] : T{0};
  }
}

// Columns of a row of scores that may not be attended to become -infinity.
template <class T>
void MaskRow(const Task<T>& task, int64_t i, int64_t k0, int64_t padded, T* scores) {
  const int64_t visible = std::clamp<int64_t>(task.causal_limit(i) - k0, 0, padded);
  const T minus_infinity = -std::numeric_limits<T>::infinity();
  std::fill(scores + visible, scores + padded, minus_infinity);
  if (const uint8_t* mask = task.mask_row(i)) {
    for (int64_t j = 0; j < visible; ++j) {
      if (mask[k0 + j] == 0) scores[j] = minus_infinity;
    }
  }
}

// scores = exp(scores * scale - shift); returns the sum. -infinity becomes 0.
template <class D, class T = hn::TFromD<D>>
T ExpRow(D d, T scale, T shift, int64_t padded, T* HWY_RESTRICT scores) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto vscale = hn::Set(d, scale);
  const auto vshift = hn::Set(d, shift);
  auto sum = hn::Zero(d);
  for (int64_t j = 0; j < padded; j += lanes) {
    const auto e = ExpOf(d, hn::MulSub(hn::LoadU(d, scores + j), vscale, vshift));
    hn::StoreU(e, d, scores + j);
    sum = hn::Add(sum, e);
  }
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

template <class D, class T = hn::TFromD<D>>
T MaxRow(D d, int64_t padded, const T* HWY_RESTRICT scores) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto largest = hn::LoadU(d, scores);
  for (int64_t j = lanes; j < padded; j += lanes) largest = hn::Max(largest, hn::LoadU(d, scores + j));
  return hn::GetLane(hn::MaxOfLanes(d, largest));
}

// Max and exp may lose a NaN; a broken row has to stay broken, so that training notices.
template <class T>
bool HasNan(const T* row, int64_t n) {
  return std::any_of(row, row + n, [](T value) { return std::isnan(value); });
}

// Factors of a tile's row under dropout: 0 or 1 / (1 - p).
template <class T>
void KeepFactors(const DropoutMask& mask, int64_t row, int64_t column_group, T* HWY_RESTRICT factors) {
  HWY_ALIGN uint32_t words[kTile];
  KeepWords(mask, row, column_group, words);
  const uint32_t threshold = mask.threshold();
  const T kept = static_cast<T>(mask.scale());
  for (int64_t j = 0; j < kTile; ++j) factors[j] = words[j] >= threshold ? kept : T{0};
}

template <class T>
void ForwardHead(const Task<T>& task, int64_t head, const AttentionForward<T>& arguments, Scratch<T> scratch) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const AttentionInputs<T>& in = task.in;
  const int64_t dvp = RoundUp(in.d_v, lanes);
  const int64_t q_stride = in.heads * in.d_k, k_stride = in.kv_heads * in.d_k, v_stride = in.kv_heads * in.d_v;
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
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const AttentionInputs<T>& in = task.in;
  const T scale = static_cast<T>(in.scale);
  const auto vscale = hn::Set(d, scale);
  HWY_ALIGN T factors[kTile];
  SmallMatmul(d, {tiles.q, tiles.dkp, 1}, tiles.keys_t, padded, tiles.weights, padded, rows, padded, in.d_k, false);
  SmallMatmul(d, {tiles.d_out, tiles.dvp, 1}, tiles.values_t, padded, tiles.d_scores, padded, rows, padded, in.d_v,
              false);
  for (int64_t i = 0; i < rows; ++i) {
    T* w = tiles.weights + i * padded;
    T* ds = tiles.d_scores + i * padded;
    const int64_t row = (task.q_begin + q0 + i) * in.heads + head;
    std::fill(w + columns, w + padded, -std::numeric_limits<T>::infinity());
    MaskRow(task, q0 + i, k0, columns, w);
    ExpRow(d, scale, arguments.log_sum_exp[row], padded, w);
    const auto dot = hn::Set(d, tiles.row_dots[q0 + i]);
    if (in.dropout.active()) {
      KeepFactors(in.dropout, row, k0 / kTile, factors);
      for (int64_t j = 0; j < padded; j += lanes) {
        const auto weight = hn::LoadU(d, w + j);
        const auto factor = hn::Load(d, factors + j);
        const auto dw = hn::Sub(hn::Mul(hn::LoadU(d, ds + j), factor), dot);
        hn::StoreU(hn::Mul(hn::Mul(weight, dw), vscale), d, ds + j);
        hn::StoreU(hn::Mul(weight, factor), d, w + j);
      }
    } else {
      for (int64_t j = 0; j < padded; j += lanes) {
        const auto dw = hn::Sub(hn::LoadU(d, ds + j), dot);
        hn::StoreU(hn::Mul(hn::Mul(hn::LoadU(d, w + j), dw), vscale), d, ds + j);
      }
    }
  }
}

template <class T>
void RowDots(const Task<T>& task, const AttentionBackward<T>& arguments, int64_t head, T* dots) {
  const int64_t d_v = task.in.d_v;
  for (int64_t i = 0; i < task.queries; ++i) {
    const int64_t at = ((task.q_begin + i) * task.in.heads + head) * d_v;
    T dot = 0;
    for (int64_t c = 0; c < d_v; ++c) dot += arguments.out[at + c] * arguments.d_out[at + c];
    dots[i] = dot;
  }
}

// One tile of keys against all queries of one head: dk and dv gather in the tiles, dq is added to the output.
template <class T>
void BackwardKeyTile(const Task<T>& task, const AttentionBackward<T>& arguments, int64_t head, int64_t k0,
                     int64_t columns, int64_t padded, BackwardTiles<T>& tiles) {
  const hn::ScalableTag<T> d;
  const AttentionInputs<T>& in = task.in;
  const int64_t q_stride = in.heads * in.d_k, o_stride = in.heads * in.d_v;
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
  const int64_t q_stride = in.heads * in.d_k, k_stride = in.kv_heads * in.d_k, v_stride = in.kv_heads * in.d_v;
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
void Forward(const AttentionForward<T>& arguments, int64_t begin, int64_t end) {
  const hn::ScalableTag<T> d;
  const int64_t dvp = RoundUp(arguments.in.d_v, static_cast<int64_t>(hn::Lanes(d)));
  const Scratch<T> scratch(kTile * (arguments.in.d_k + 2 * dvp + kTile));
  for (int64_t index = begin; index < end; ++index) {
    const Task<T> task(arguments.in, index);
    for (int64_t head = task.first_head(); head < task.last_head(); ++head) ForwardHead(task, head, arguments, scratch);
  }
}

template <class T>
void Backward(const AttentionBackward<T>& arguments, int64_t begin, int64_t end) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t most_queries = 0;
  for (int64_t index = begin; index < end; ++index)
    most_queries = std::max(most_queries, Task<T>(arguments.in, index).queries);
  const Scratch<T> scratch(BackwardTiles<T>::elements(arguments.in, lanes, most_queries));
  BackwardTiles<T> tiles(arguments.in, lanes, most_queries, scratch);
  for (int64_t index = begin; index < end; ++index) BackwardTask(Task<T>(arguments.in, index), arguments, tiles);
}

void ForwardF32(const AttentionForward<float>& a, int64_t begin, int64_t end) {
  Forward(a, begin, end);
}
void ForwardF64(const AttentionForward<double>& a, int64_t begin, int64_t end) {
  Forward(a, begin, end);
}
void BackwardF32(const AttentionBackward<float>& a, int64_t begin, int64_t end) {
  Backward(a, begin, end);
}
void BackwardF64(const AttentionBackward<double>& a, int64_t begin, int64_t end) {
  Backward(a, begin, end);
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

}  // namespace

void attention_forward(Cpu, const AttentionForward<float>& arguments) {
  for_each_task(arguments.in, [&](int64_t b, int64_t e) { HWY_DYNAMIC_DISPATCH(ForwardF32)(arguments, b, e); });
}
void attention_forward(Cpu, const AttentionForward<double>& arguments) {
  for_each_task(arguments.in, [&](int64_t b, int64_t e) { HWY_DYNAMIC_DISPATCH(ForwardF64)(arguments, b, e); });
}
void attention_backward(Cpu, const AttentionBackward<float>& arguments) {
  for_each_task(arguments.in, [&](int64_t b, int64_t e) { HWY_DYNAMIC_DISPATCH(BackwardF32)(arguments, b, e); });
}
void attention_backward(Cpu, const AttentionBackward<double>& arguments) {
  for_each_task(arguments.in, [&](int64_t b, int64_t e) { HWY_DYNAMIC_DISPATCH(BackwardF64)(arguments, b, e); });
}

template <class T>
void attention_weights(Cpu, const AttentionInputs<T>& in, const T* log_sum_exp, T* weights, int64_t most_queries,
                       int64_t most_keys) {
  const int64_t group = in.heads / in.kv_heads;
  for (int64_t s = 0; s < in.sequences; ++s) {
    const int64_t q_begin = in.query_offsets[s], queries = in.query_offsets[s + 1] - q_begin;
    const int64_t k_begin = in.key_offsets[s], keys = in.key_offsets[s + 1] - k_begin;
    for (int64_t h = 0; h < in.heads; ++h) {
      for (int64_t i = 0; i < queries; ++i) {
        const int64_t visible = in.causal ? std::clamp<int64_t>(i + 1 + keys - queries, 0, keys) : keys;
        const uint8_t* mask =
            in.mask ? in.mask + ((in.mask_sequences == 1 ? 0 : s) * in.mask_queries + i) * in.mask_keys : nullptr;
        const int64_t q_row = (q_begin + i) * in.heads + h;
        T* out = weights + ((s * in.heads + h) * most_queries + i) * most_keys;
        for (int64_t j = 0; j < visible; ++j) {
          if (mask && mask[j] == 0) continue;
          const int64_t k_row = (k_begin + j) * in.kv_heads + h / group;
          T score = 0;
          for (int64_t c = 0; c < in.d_k; ++c) score += in.q[q_row * in.d_k + c] * in.k[k_row * in.d_k + c];
          out[j] = std::exp(score * static_cast<T>(in.scale) - log_sum_exp[q_row]);
        }
      }
    }
  }
}
template void attention_weights<float>(Cpu, const AttentionInputs<float>&, const float*, float*, int64_t, int64_t);
template void attention_weights<double>(Cpu, const AttentionInputs<double>&, const double*, double*, int64_t, int64_t);

}  // namespace attune
#endif  // HWY_ONCE
