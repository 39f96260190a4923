#include "attune/kernels/cpu/attention/cached_attention_piece.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attune/kernels/cpu/attention/cached_attention_piece.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

#include <algorithm>
#include <cmath>
#include <limits>

#include "attune/kernels/cpu/row_products_inl.h"
#include "attune/kernels/cpu/softmax_inl.h"

HWY_BEFORE_NAMESPACE();
namespace attune {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int64_t kStride = kCachedAttentionSlots;  // from the weights of a query to those of the next
constexpr int64_t kKeyBlock = 16;                   // slots whose key heads are read one after another
constexpr int64_t kValueBlock = 32;                 // the same for values; their sums are added up

// The scores of one tile of queries over slots [begin, end).
template <int kQueries, class T>
void ScoreTile(const CachedAttentionPiece<T>& p, int64_t query, int64_t begin, int64_t end, int64_t offset) {
  const hn::ScalableTag<T> d;
  constexpr int kRows = kTileRows<kQueries, T>;
  HWY_ALIGN T dots[kQueries * kRows];
  for (int64_t j = begin; j < end; j += kRows) {
    const int64_t count = std::min<int64_t>(kRows, end - j);
    if (count == kRows) {
      DotTile<kQueries>(d, p.q + query, p.key_rows + j, offset, p.d_k, dots);
    } else {  // the last row stands in for those that are missing
      const T* rows[kRows];
      for (int64_t u = 0; u < kRows; ++u) rows[u] = p.key_rows[std::min(j + u, end - 1)];
      DotTile<kQueries>(d, p.q + query, rows, offset, p.d_k, dots);
    }
    for (int64_t i = 0; i < kQueries; ++i) {
      T* scores = p.weights + (query + i) * kStride + j;
      for (int64_t u = 0; u < count; ++u) scores[u] = dots[i * kRows + u] * p.scale;
    }
  }
}

template <class T>
void Scores(const CachedAttentionPiece<T>& p) {
  for (int64_t begin = 0; begin < p.slots; begin += kKeyBlock) {
    const int64_t end = std::min(begin + kKeyBlock, p.slots);
    for (int64_t head = 0; head < p.kv_heads; ++head) {
      ForEachTileOfQueries(p.group, [&](int64_t i, auto queries) HWY_ATTR {
        ScoreTile<decltype(queries)::value>(p, head * p.group + i, begin, end, (p.first_key_head + head) * p.d_k);
      });
    }
  }
}

template <class T>
int64_t RelativeRow(const CachedAttentionPiece<T>& p, int64_t j) {
  return p.clip - std::min<int64_t>(p.distances[j], p.clip);
}

// Distances fall along the slots, so that those of one row of the tables lie side by side: each row that occurs is
// multiplied with the query once, and added to the output once.
template <class T>
void AddRelativeScores(const CachedAttentionPiece<T>& p, int64_t query) {
  const hn::ScalableTag<T> d;
  int64_t row = -1;
  T score = 0;
  HWY_ALIGN T dot[kTileRows<1, T>];
  const T* rows[kTileRows<1, T>];
  for (int64_t j = 0; j < p.slots; ++j) {
    if (const int64_t wanted = RelativeRow(p, j); wanted != row) {
      row = wanted;
      std::fill_n(rows, kTileRows<1, T>, p.relative_keys);
      DotTile<1>(d, p.q + query, rows, row * p.d_k, p.d_k, dot);
      score = dot[0] * p.scale;
    }
    p.weights[query * kStride + j] += score;
  }
}

template <class T>
void AddRelativeValues(const CachedAttentionPiece<T>& p, int64_t query) {
  const hn::ScalableTag<T> d;
  for (int64_t j = 0; j < p.slots;) {
    const int64_t row = RelativeRow(p, j);
    T weight = 0;
    for (; j < p.slots && RelativeRow(p, j) == row; ++j) weight += p.weights[query * kStride + j];
    const T* rows[1] = {p.relative_values};
    SumRows<1>(d, {&weight, 1}, {rows, 1, row * p.d_v}, {p.out + query, p.d_v, true});
  }
}

template <class T>
void Softmax(const CachedAttentionPiece<T>& p, int64_t query) {
  T* weights = p.weights + query * kStride;
  if (p.relative_keys != nullptr) AddRelativeScores(p, query);
  if (p.soft_cap > 0) {
    for (int64_t j = 0; j < p.slots; ++j) weights[j] = p.soft_cap * std::tanh(weights[j] / p.soft_cap);
  }
  if (p.slopes != nullptr) {
    for (int64_t j = 0; j < p.slots; ++j) weights[j] -= p.slopes[query] * static_cast<T>(p.distances[j]);
  }
  if (p.biases != nullptr) {
    for (int64_t j = 0; j < p.slots; ++j)
      weights[j] += p.biases[query][-std::min<int64_t>(p.distances[j], p.reach) * p.bias_stride];
  }
  const auto slots = static_cast<size_t>(p.slots);
  p.largest[query] = Largest(hn::ScalableTag<T>(), weights, slots);
  p.total[query] = SumOfExponentials(weights, ShiftOf(p.largest[query]), slots, weights);
}

template <class T>
void Values(const CachedAttentionPiece<T>& p) {
  const hn::ScalableTag<T> d;
  for (int64_t begin = 0; begin < p.slots; begin += kValueBlock) {
    const int64_t count = std::min(kValueBlock, p.slots - begin);
    for (int64_t head = 0; head < p.kv_heads; ++head) {
      ForEachTileOfQueries(p.group, [&](int64_t i, auto queries) HWY_ATTR {
        const int64_t query = head * p.group + i;
        SumRows<decltype(queries)::value>(d, {p.weights + query * kStride + begin, kStride},
                                          {p.value_rows + begin, count, (p.first_key_head + head) * p.value_stride},
                                          {p.out + query, p.d_v, begin > 0});
      });
    }
  }
}

template <class T>
void Piece(const CachedAttentionPiece<T>& p) {
  const hn::ScalableTag<T> d;
  Scores(p);
  for (int64_t query = 0; query < p.kv_heads * p.group; ++query) Softmax(p, query);
  Values(p);
  for (int64_t query = 0; query < p.kv_heads * p.group; ++query) {
    if (p.relative_values != nullptr) AddRelativeValues(p, query);
    if (!p.normalize) continue;
    T* out = p.out[query];
    const auto factor = hn::Set(d, T{1} / divisor_of(p.total[query]));
    ForEachVector(d, static_cast<size_t>(p.d_v), [&](size_t c, auto part) HWY_ATTR {
      part.Store(d, hn::Mul(part.Load(d, out + c), factor), out + c);
    });
  }
}

void PieceF32(const CachedAttentionPiece<float>& p) {
  Piece(p);
}
void PieceF64(const CachedAttentionPiece<double>& p) {
  Piece(p);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attune
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attune {

HWY_EXPORT(PieceF32);
HWY_EXPORT(PieceF64);

void cached_attention_piece(const CachedAttentionPiece<float>& piece) {
  HWY_DYNAMIC_DISPATCH(PieceF32)(piece);
}
void cached_attention_piece(const CachedAttentionPiece<double>& piece) {
  HWY_DYNAMIC_DISPATCH(PieceF64)(piece);
}

}  // namespace attune
#endif  // HWY_ONCE
