#pragma once
// Some queries over a piece of a list of slots.

#include <cstdint>

namespace attune {

/// Slots that are read at a time: scores of no more than these are held, and a longer list is cut into pieces of so
/// many slots, whatever the number of threads.
constexpr int64_t kCachedAttentionSlots = 128;

/// Some queries over the same piece of a list of slots. Each of kv_heads key heads is read by `group` queries, which
/// are side by side in `q`, `out`, `slopes` and what follows.
template <class T>
struct CachedAttentionPiece {
  const T* const* q;           // [kv_heads * group], of d_k numbers each
  T* const* out;               // of d_v numbers each
  const T* const* key_rows;    // [slots]; key head h is at h * d_k
  const T* const* value_rows;  // [slots]; key head h is at h * value_stride
  int64_t first_key_head;
  int64_t kv_heads, group, slots;  // slots: 1 to kCachedAttentionSlots
  int64_t d_k, d_v, value_stride;
  T scale;
  /// Null, or how far the slots are from the queries, for the terms that depend on it: ALiBi's slopes, one for each
  /// query, and the tables of Shaw et al. 2018, whose row for a distance is clip - min(distance, clip); null: none.
  const int32_t* distances;
  const T* slopes;
  const T* relative_keys;    // [2 clip + 1, d_k]
  const T* relative_values;  // [2 clip + 1, d_v]
  int64_t clip;
  /// Null, or of each query what is added to the score of a slot: of one at distance n, biases[query][-n * bias_stride]
  /// with n at most `reach`.
  const T* const* biases;
  int64_t bias_stride, reach;
  T soft_cap;      // 0: none
  bool normalize;  // divide `out` by `total`: there are no other pieces
  // Of each query: its weights exp(score - largest), in rows of kCachedAttentionSlots numbers, what was subtracted, and
  // the sum.
  T* weights;
  T* largest;
  T* total;
};

void cached_attention_piece(const CachedAttentionPiece<float>& piece);
void cached_attention_piece(const CachedAttentionPiece<double>& piece);

}  // namespace attune
