#pragma once
// The interface of every kind of attention: over a batch, and over a cache while decoding.

#include <memory>
#include <optional>
#include <span>

#include "attune/cache/kv_cache.h"
#include "attune/nn/attention/relative_bias.h"
#include "attune/nn/module.h"
#include "attune/ops/attention/attention.h"
#include "attune/ops/attention/cached_attention.h"
#include "attune/ops/attention/guided_attention.h"
#include "attune/ops/attention/rotary.h"

namespace [[gnu::visibility("default")]] attune {

/// Trains one head to attend to the keys that its queries are aligned with, see guided_attention_loss().
struct AttentionGuide {
  AlignmentLinks links = {};
  int64_t head = 0;       // from 0
  double loss_scale = 1;  // factor of the loss
};

/// Which query may attend to which key, for packed rows.
struct AttentionMask {
  Sequences queries = {};
  Sequences keys = {};
  bool causal = false;
  Tensor allowed = {};        // uint8 [sequences or 1, most queries, most keys], or undefined; see AttentionOptions
  bool with_weights = false;  // the output contains the weights too
  const AttentionGuide* guide = nullptr;  // the output contains its loss too; not together with `causal` or `allowed`
};

/// How self-attention uses the positions of queries and keys. Cross-attention has the defaults.
struct AttentionPositions {
  AttentionPattern pattern = {};             // which query sees which key
  std::optional<RotaryOptions> rotary = {};  // rotates queries and keys, Su et al. 2021
  bool alibi = false;                        // a penalty on distance, Press et al. 2022
  int64_t relative_clip = 0;                 // vectors for distances up to this one, Shaw et al. 2018; 0: none
  /// Added to the scores, Raffel et al. 2020; null: nothing. The stack owns it, and its layers share it.
  std::shared_ptr<const RelativeBias> bias = {};

  /// What attention() adds to the scores.
  Tensor distance_bias() const { return bias ? bias->by_distance() : Tensor{}; }
};

/// Queries over a cache.
struct CachedQueries {
  Indices positions;                 // of each query in its sequence, [rows]
  const SlotTable* table = nullptr;  // the slots that each query sees
  bool with_weights = false;         // the output contains the weights too
};

struct AttentionOutput {
  Tensor states;            // [queries, d_model]
  Tensor weights;           // of each head, if with_weights; else undefined
  Tensor guided_loss = {};  // a scalar, with a guide; else undefined
};

/// guided_attention_loss() of the mask's guide, of heads whose scores have this scale and soft cap; undefined without a
/// guide. Throws ConfigError where the mask hides keys.
Tensor guided_loss(const HeadColumns& q, const HeadColumns& k, const AttentionMask& mask, double scale,
                   double soft_cap = 0);

class Attention : public Module {
 public:
  /// query [queries, d_model], memory [keys, d_model]. For self-attention both are the same tensor.
  virtual AttentionOutput forward(const Tensor& query, const Tensor& memory, const AttentionMask& mask) const = 0;
  /// The states of forward(), [queries, d_model].
  Tensor operator()(const Tensor& query, const Tensor& memory, const AttentionMask& mask) const {
    return forward(query, memory, mask).states;
  }

  virtual AttentionCache make_cache() const = 0;
  /// Writes what attend() needs of `memory` [n, d_model] into `slots` of the cache. `positions` [n] are those of the
  /// rows of memory in their sequences.
  virtual void append(const Tensor& memory, const Indices& positions, std::span<const int32_t> slots,
                      AttentionCache& cache) const = 0;
  /// operator()(x, x, mask) and append(x, positions, slots, cache) at once, for whole prompts: what both need is
  /// computed once.
  virtual Tensor prompt(const Tensor& x, const AttentionMask& mask, std::span<const int32_t> slots,
                        AttentionCache& cache) const = 0;
  /// query [rows, d_model] over the slots of each row. The states [rows, d_model] equal operator() up to rounding. Call
  /// it under NoGrad: attention over a cache is not differentiable.
  virtual AttentionOutput attend(const Tensor& query, const CachedQueries& queries,
                                 const AttentionCache& cache) const = 0;
  /// append(x, q.positions, slots, cache) and the states of attend(x, q, cache) at once, also under NoGrad.
  virtual Tensor step(const Tensor& x, const CachedQueries& q, std::span<const int32_t> slots,
                      AttentionCache& cache) const {
    append(x, q.positions, slots, cache);
    return attend(x, q, cache).states;
  }
  /// How many numbers the cache keeps for each token.
  virtual int64_t cache_width() const = 0;
};

}  // namespace attune
