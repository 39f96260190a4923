#pragma once
// Attention of single queries over the slots of a cache.

#include <cstdint>
#include <span>
#include <vector>

#include "attune/kernels/attention/attention_pattern.h"
#include "attune/kernels/attention/pages.h"
#include "attune/tensor/tensor.h"

namespace attune {

/// Query r sees slots[begin[r]] ... slots[end[r] - 1]: positions 0, 1, ... of its sequence; the query is at the last of
/// these positions. In the row of a slot, key head h begins at column h * d_k of `keys` and its values at column
/// h * (values.width() / kv_heads) of `values`; query head h reads key head h / (heads / kv_heads). All tensors are
/// float32, or all are float64.
struct CachedAttention {
  const Tensor& q;      // [rows, heads, d_k]
  const Pages& keys;    // width kv_heads * d_k
  const Pages& values;  // width at least kv_heads * d_v; may be the keys
  std::span<const int32_t> slots;
  std::span<const int32_t> begin, end;  // [rows]
  int64_t kv_heads = 1;
  double scale = 1;
  AttentionPattern pattern = {};
  std::vector<double> slopes = {};  // of ALiBi, one for each head; empty: no ALiBi
  Tensor relative_keys = {};        // [2 clip + 1, d_k], or undefined; see AttentionOptions (ops/attention/attention.h)
  Tensor relative_values = {};      // [2 clip + 1, d_v], or undefined
  int64_t clip = 0;
  Tensor distance_bias = {};  // [2 reach + 1, heads], or undefined
  double soft_cap = 0;        // 0: none
  const Tensor& out;          // [rows, heads, d_v]
  Tensor weights = {};        // [rows, heads, most slots of a row], zeros before the call; undefined: not wanted
};

/// out = softmax(q k^T * scale) v over the slots of each query that the pattern allows; zeros for a query without
/// slots or whose scores are all -infinity. `weights` are indexed by position. The result of a row depends only on that
/// row and its slots.
void cached_attention_forward(Cpu, const CachedAttention& arguments);
void cached_attention_forward(Plain, const CachedAttention& arguments);
void cached_attention_forward(Cuda, const CachedAttention& arguments);

}  // namespace attune
