#pragma once
// Some queries over a piece of a list of slots.

#include <cstdint>

namespace attune {

/// The most slots of a piece, which limits the scores that are held at a time. A longer list is cut into pieces of this
/// size, whatever the number of threads.
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
  /// [slots]: how far each slot is from the queries; null if no term depends on it. These terms are ALiBi's slopes, one
  /// for each query, the tables of Shaw et al. 2018, whose row for a distance is clip - min(distance, clip), and the
  /// biases below. Each is null where it is not used.
  const int32_t* distances;
  const T* slopes;
  const T* relative_keys;    // [2 clip + 1, d_k]
  const T* relative_values;  // [2 clip + 1, d_v]
  int64_t clip;
  /// Null, or where the bias of distance 0 stands for each query: biases[query][-min(n, reach) * bias_stride] is added
  /// to the score of a slot at distance n.
  const T* const* biases;
  int64_t bias_stride, reach;
  T soft_cap;      // 0: none
  bool normalize;  // divide `out` by `total`: there are no other pieces
  // Written for each query: the weights exp(score - largest), in rows of kCachedAttentionSlots numbers; the largest
  // score; and the sum of the weights.
  T* weights;
  T* largest;
  T* total;
};

/// Returns what the weights of a query are divided by: their sum, or 1 if all scores are -infinity. Such a query gets
/// zeros, as from attention_forward(), not 0 / 0.
template <class T>
inline T divisor_of(T total) {
  return total == 0 ? T{1} : total;
}

void cached_attention_piece(const CachedAttentionPiece<float>& piece);
void cached_attention_piece(const CachedAttentionPiece<double>& piece);

}  // namespace attune
