// What the attention kernels share: the data of a task, tiles, and rows of scores. Included once for each target
// (Highway).

#if defined(ATTUNE_KERNELS_ATTENTION_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTUNE_KERNELS_ATTENTION_TILE_INL_H_
#undef ATTUNE_KERNELS_ATTENTION_TILE_INL_H_
#else
#define ATTUNE_KERNELS_ATTENTION_TILE_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "attune/base/rounding.h"
#include "attune/kernels/attention/attention_plan.h"
#include "attune/kernels/cpu/attention/attention_pointers.h"
#include "attune/kernels/cpu/dropout_inl.h"
#include "attune/kernels/cpu/gemm/transpose_inl.h"
#include "attune/kernels/cpu/math_inl.h"
#include "attune/tensor/buffer.h"

HWY_BEFORE_NAMESPACE();
namespace attune {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A tile is kTile queries by kTile keys, so that scores, keys and values stay in the first-level cache. A tile of keys
// is also one column group of the dropout mask.
constexpr int64_t kTile = kAttentionTile;

// One sequence and some of the query heads that share a key head, with everything that a tile needs to find its data.
template <class T>
struct Task {
  const AttentionPointers<T>& in;
  int64_t sequence, first_head, last_head, kv_head;
  int64_t q_begin, queries, k_begin, keys;

  // `heads`: how many a task has; a divisor of in.group().
  Task(const AttentionPointers<T>& inputs, int64_t heads, int64_t index)
      : in(inputs),
        sequence(index / (inputs.heads / heads)),
        first_head(index % (inputs.heads / heads) * heads),
        last_head(first_head + heads),
        kv_head(first_head / inputs.group()),
        q_begin(inputs.query_offsets[sequence]),
        queries(inputs.query_offsets[sequence + 1] - q_begin),
        k_begin(inputs.key_offsets[sequence]),
        keys(inputs.key_offsets[sequence + 1] - k_begin) {}

  AttentionSpan span() const { return {queries, keys, in.causal}; }
  int64_t heads() const { return last_head - first_head; }
  /// Returns the limit of the causal rule: query i sees none but keys [0, limit) of the sequence.
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
    used_ += round_up(elements, 64 / static_cast<int64_t>(sizeof(T)));
    return data;
  }

 private:
  std::shared_ptr<Buffer> buffer_;
  int64_t used_ = 0;
};

// Sets dq of queries [begin, end) of a task's heads to 0. dq is laid out like q.
template <class T>
void ClearQueryGradients(const Task<T>& task, int64_t begin, int64_t end, T* dq) {
  const AttentionPointers<T>& in = task.in;
  for (int64_t i = begin; i < end; ++i)
    std::fill_n(dq + (task.q_begin + i) * in.q_row + task.first_head * in.d_k, task.heads() * in.d_k, T{0});
}

// Copies rows x width to rows of `padded` elements; the rest of each row is zero.
template <class T>
void CopyRows(const T* from, int64_t stride, int64_t rows, int64_t width, int64_t padded, T* to) {
  for (int64_t i = 0; i < rows; ++i) {
    std::copy_n(from + i * stride, width, to + i * padded);
    std::fill(to + i * padded + width, to + (i + 1) * padded, T{0});
  }
}

// The transpose of rows x width: width rows of `padded` elements, zero beyond `rows`.
template <class T>
void CopyTransposed(const T* from, int64_t stride, int64_t rows, int64_t width, int64_t padded, T* HWY_RESTRICT to) {
  int64_t i = 0;
  for (; i + 4 <= rows; i += 4) {
    int64_t c = 0;
#if HWY_TARGET != HWY_SCALAR
    if constexpr (sizeof(T) == 4) {
      const float* const r[4] = {from + i * stride, from + (i + 1) * stride, from + (i + 2) * stride,
                                 from + (i + 3) * stride};
      for (; c + 4 <= width; c += 4) Transpose4({r[0] + c, r[1] + c, r[2] + c, r[3] + c}, to + c * padded + i, padded);
    }
#endif
    for (; c < width; ++c) {
      for (int64_t u = 0; u < 4; ++u) to[c * padded + i + u] = from[(i + u) * stride + c];
    }
  }
  for (; i < padded; ++i) {
    for (int64_t c = 0; c < width; ++c) to[c * padded + i] = i < rows ? from[i * stride + c] : T{0};
  }
}

// sum(a[i] * b[i])
template <class D, class T = hn::TFromD<D>>
HWY_INLINE T Dot(D d, const T* a, const T* b, int64_t n) {
  T total[1];
  Sums(d, static_cast<size_t>(n), total, [&](size_t i, auto part, auto& sums) HWY_ATTR {
    sums[0] = hn::MulAdd(part.Load(d, a + i), part.Load(d, b + i), sums[0]);
  });
  return total[0];
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

template <class D, class T = hn::TFromD<D>>
T SumRow(D d, int64_t padded, const T* HWY_RESTRICT row) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto sum = hn::LoadU(d, row);
  for (int64_t j = lanes; j < padded; j += lanes) sum = hn::Add(sum, hn::LoadU(d, row + j));
  return hn::GetLane(hn::SumOfLanes(d, sum));
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

// One row of a tile of scores: `padded` numbers of `row` of the output, in one column group of the dropout mask.
struct RowOfTile {
  int64_t row, column_group, padded;
};

// For one row of a tile: applies dropout to the weights. d_scores has the gradient of the weights (d_out v^T) and
// becomes the gradient of q k^T: weight * (dropout(d_scores) - dot) * scale, where dot = sum(d_out * out).
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void ScoreGradients(D d, const AttentionPointers<T>& in, RowOfTile of, T dot, T* HWY_RESTRICT weights,
                               T* HWY_RESTRICT d_scores) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto vscale = hn::Set(d, static_cast<T>(in.scale));
  const auto vdot = hn::Set(d, dot);
  if (in.dropout.active()) {
    HWY_ALIGN T factors[kTile];
    KeepFactors(in.dropout, of.row, of.column_group, factors);
    for (int64_t j = 0; j < of.padded; j += lanes) {
      const auto weight = hn::LoadU(d, weights + j);
      const auto factor = hn::Load(d, factors + j);
      const auto dw = hn::Sub(hn::Mul(hn::LoadU(d, d_scores + j), factor), vdot);
      hn::StoreU(hn::Mul(hn::Mul(weight, dw), vscale), d, d_scores + j);
      hn::StoreU(hn::Mul(weight, factor), d, weights + j);
    }
  } else {
    for (int64_t j = 0; j < of.padded; j += lanes) {
      const auto dw = hn::Sub(hn::LoadU(d, d_scores + j), vdot);
      hn::StoreU(hn::Mul(hn::Mul(hn::LoadU(d, weights + j), dw), vscale), d, d_scores + j);
    }
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attune
HWY_AFTER_NAMESPACE();

#endif
