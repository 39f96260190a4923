#pragma once
// Attention of single queries over a cache, for decoding. Not differentiable.

#include "attune/cache/paged_rows.h"
#include "attune/cache/slot_table.h"
#include "attune/kernels/attention_pattern.h"
#include "attune/ops/attention.h"
#include "attune/tensor/tensor.h"

namespace [[gnu::visibility("default")]] attune {

struct CachedAttentionOptions {
  int64_t kv_heads = 1;
  /// Of each key head; 0: all that a value row has for it, values.width() / kv_heads numbers. With latent attention the
  /// values are the first d_v numbers of the key rows, which are then given twice.
  int64_t d_v = 0;
  double scale = 1;
  /// The slots of a row are positions 0, 1, ... of its sequence and its query is at the last: causal by construction.
  /// What the pattern leaves out is not visited.
  AttentionPattern pattern = {};
  /// As in AttentionOptions: Press et al. 2022; Shaw et al. 2018, a [2 clip + 1, d_k] and b [2 clip + 1, d_v].
  bool alibi = false;
  Tensor relative_keys = {};
  Tensor relative_values = {};
};

/// softmax(q k^T * scale) v over the slots of each query.
///   q [rows, heads, d_k]   keys: rows of kv_heads * d_k   values: rows of kv_heads * at least d_v (may be the same
///   object)   returns [rows, heads, d_v]
/// Query head h reads key head h / (heads / kv_heads). A query without slots gives zeros. The result of a row depends
/// on that row and its slots alone. Throws ShapeError, and ConfigError for a pattern that cannot be.
Tensor cached_attention(const Tensor& q, const PagedRows& keys, const PagedRows& values, const SlotTable& table,
                        const CachedAttentionOptions& options);
/// The same where `with_weights` with what each head gave to the positions of a row's slots: [rows, heads, most slots
/// of a row], zeros beyond.
AttentionResult cached_attention(const Tensor& q, const PagedRows& keys, const PagedRows& values,
                                 const SlotTable& table, const CachedAttentionOptions& options, bool with_weights);

}  // namespace attune
