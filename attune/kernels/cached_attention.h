#pragma once
// Attention of single queries over the slots of a cache.

#include <cstdint>
#include <span>
#include <vector>

#include "attune/kernels/attention_pattern.h"
#include "attune/kernels/pages.h"
#include "attune/tensor/tensor.h"

namespace attune {

/// Query r sees slots[begin[r]] ... slots[end[r] - 1], which are positions 0, 1, ... of its sequence, and is at the
/// last of them. Key head h of a slot begins at h * d_k of its row of `keys` and at h * (values.width() / kv_heads) of
/// its row of `values`; query head h reads key head h / (heads / kv_heads). Everything is float32, or float64.
struct CachedAttention {
  const Tensor& q;      // [rows, heads, d_k]
  const Pages& keys;    // width kv_heads * d_k
  const Pages& values;  // width at least kv_heads * d_v; may be the keys
  std::span<const int32_t> slots;
  std::span<const int32_t> begin, end;  // [rows]
  int64_t kv_heads = 1;
  double scale = 1;
  AttentionPattern pattern = {};
  std::vector<double> slopes = {};  // ALiBi's, one for each head; empty: none
  Tensor relative_keys = {};        // [2 clip + 1, d_k], or undefined; see AttentionOptions (ops/attention.h)
  Tensor relative_values = {};      // [2 clip + 1, d_v], or undefined
  int64_t clip = 0;
  const Tensor& out;    // [rows, heads, d_v]
  Tensor weights = {};  // [rows, heads, most slots of a row], with zeros; undefined: they are not asked for
};

/// out = softmax(q k^T * scale) v over the slots of each query that the pattern allows, zeros for a query without
/// slots; `weights` by position. A row depends on that row and its slots alone.
void cached_attention_forward(Cpu, const CachedAttention& arguments);
void cached_attention_forward(Plain, const CachedAttention& arguments);

}  // namespace attune
