#pragma once
// What every kind of attention can do: attend over a batch, and attend over a cache while decoding.

#include "attune/nn/module.h"
#include "attune/ops/attention.h"
#include "attune/ops/cached_attention.h"

namespace attune {

/// Who may attend to whom, on packed rows.
struct AttentionMask {
  Sequences queries = {};
  Sequences keys = {};
  bool causal = false;
  Tensor allowed = {};        // uint8 [sequences or 1, most queries, most keys], or undefined; see AttentionOptions
  Tensor* weights = nullptr;  // on request, see AttentionOptions
};

/// What one attention keeps of the past. With latent attention `keys` holds the latents and `values` is empty.
struct AttentionCache {
  PagedRows keys;
  PagedRows values;
  int64_t bytes() const { return keys.bytes() + values.bytes(); }
};

class Attention : public Module {
 public:
  /// query [queries, d_model], memory [keys, d_model] -> [queries, d_model]. Self-attention passes one tensor twice.
  virtual Tensor operator()(const Tensor& query, const Tensor& memory, const AttentionMask& mask) const = 0;

  virtual AttentionCache make_cache() const = 0;
  /// Adds what has to be kept of `memory` [n, d_model]; returns the slot of the first row.
  virtual int64_t append(const Tensor& memory, AttentionCache& cache) const = 0;
  /// query [rows, d_model] over the slots of each row -> [rows, d_model]. Equals operator() to rounding. Called
  /// under NoGrad: the sum over the cache is not differentiable.
  virtual Tensor attend(const Tensor& query, const AttentionCache& cache, const SlotTable& table) const = 0;
  /// Numbers kept for each token.
  virtual int64_t cache_width() const = 0;
};

}  // namespace attune
