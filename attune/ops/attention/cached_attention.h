#pragma once
// Attention of single queries over a cache, for decoding. Not differentiable.

#include "attune/cache/paged_rows.h"
#include "attune/cache/slot_table.h"
#include "attune/kernels/attention/attention_pattern.h"
#include "attune/ops/attention/attention.h"
#include "attune/tensor/tensor.h"

namespace [[gnu::visibility("default")]] attune {

struct CachedAttentionOptions {
  int64_t kv_heads = 1;
  /// The width of a value head; 0: values.width() / kv_heads. With latent attention the values are the first d_v
  /// numbers of the key rows; the caller then passes the keys twice.
  int64_t d_v = 0;
  double scale = 1;
  /// The slots of a row are positions 0, 1, ... of its sequence and its query is at the last: causal by construction.
  /// Slots that the pattern does not allow are not read.
  AttentionPattern pattern = {};
  /// As in AttentionOptions: Press et al. 2022; Shaw et al. 2018, a [2 clip + 1, d_k] and b [2 clip + 1, d_v].
  bool alibi = false;
  Tensor relative_keys = {};
  Tensor relative_values = {};
  Tensor distance_bias = {};  // [2 reach + 1, heads], as in AttentionOptions
  double soft_cap = 0;        // as in AttentionOptions
};

/// softmax(q k^T * scale) v over the slots of each query.
///   q [rows, heads, d_k]   keys: rows of kv_heads * d_k   values: rows of kv_heads * at least d_v (may be the same
///   object)   returns [rows, heads, d_v]
/// Query head h reads key head h / (heads / kv_heads). A query without slots gives zeros. The result of a row depends
/// only on that row and its slots. Throws ShapeError, and ConfigError for a pattern that is not valid.
Tensor cached_attention(const Tensor& q, const PagedRows& keys, const PagedRows& values, const SlotTable& table,
                        const CachedAttentionOptions& options);
/// The same. If `with_weights`, also returns the weights of each head by position: [rows, heads, most slots of a row],
/// zeros beyond the slots of a row.
AttentionResult cached_attention(const Tensor& q, const PagedRows& keys, const PagedRows& values,
                                 const SlotTable& table, const CachedAttentionOptions& options, bool with_weights);

}  // namespace attune
