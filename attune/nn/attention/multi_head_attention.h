#pragma once

#include <memory>
#include "attune/nn/attention/attention.h"

#include "attune/nn/dropout.h"
#include "attune/nn/layer_norm.h"
#include "attune/nn/linear.h"

namespace [[gnu::visibility("default")]] attune {

struct MultiHeadAttentionConfig {
  int64_t d_model = 512;
  int64_t heads = 8;     // divides d_model, unless head_dim is given
  int64_t kv_heads = 0;  // divides heads; 0: heads
  int64_t head_dim = 0;  // the width of a head; 0: d_model / heads
  bool query_key_value_bias = true;
  bool output_bias = true;
  bool head_norm = false;     // a norm on each head of queries and of keys, before they are rotated
  LayerNormConfig norm = {};  // the form of these norms
  double soft_cap = 0;        // see AttentionOptions
  double scale = 0;           // of the scores; 0: 1 / sqrt(d_head)
  double dropout = 0;         // on the attention weights
  AttentionPositions positions = {};
};

/// MultiHead(Q, K, V) = Concat(head_1 ... head_h) W_o, head_i = Attention(Q W_q_i, K W_k_i, V W_v_i)
/// With fewer key heads than query heads, several query heads share one key and value head: grouped-query attention.
/// Source: Vaswani et al. 2017, section 3.2.2; Shazeer 2019; Ainslie et al. 2023; Henry et al. 2020 for norms of heads.
class MultiHeadAttention final : public Attention {
 public:
  /// Throws ConfigError naming the field.
  explicit MultiHeadAttention(const MultiHeadAttentionConfig& config);
  AttentionOutput forward(const Tensor& query, const Tensor& memory, const AttentionMask& mask) const override;
  AttentionCache make_cache() const override;
  void append(const Tensor& memory, const Indices& positions, std::span<const int32_t> slots,
              AttentionCache& cache) const override;
  Tensor prompt(const Tensor& x, const AttentionMask& mask, std::span<const int32_t> slots,
                AttentionCache& cache) const override;
  AttentionOutput attend(const Tensor& query, const CachedQueries& queries, const AttentionCache& cache) const override;
  Tensor step(const Tensor& x, const CachedQueries& q, std::span<const int32_t> slots,
              AttentionCache& cache) const override;
  int64_t cache_width() const override { return 2 * kv_heads_ * d_head_; }
  void visit(Visitor& v) override;

 private:
  struct KeysAndValues {
    Tensor keys, values;  // [n, kv_heads, d_head]
  };
  KeysAndValues keys_and_values(const Tensor& memory, const Indices& positions) const;
  struct QueriesKeysAndValues {
    Tensor queries;
    KeysAndValues memory;
  };
  QueriesKeysAndValues queries_keys_and_values(const Tensor& x, const Indices& positions) const;
  void append(const KeysAndValues& memory, std::span<const int32_t> slots, AttentionCache& cache) const;
  Tensor queries(const Tensor& x, const Indices& positions) const;  // [n, heads, d_head]
  /// The rows of a product as heads [n, heads, d_head], normalised by `norm` unless it is null, and rotated if
  /// positions are rotary.
  Tensor turned(const Tensor& rows, const LayerNorm* norm, const Indices& positions) const;
  /// Attention over the slots of each row; `query` [n, heads, d_head] comes from turned().
  AttentionOutput attend_cached(const Tensor& query, const CachedQueries& queries, const AttentionCache& cache) const;
  AttentionResult cached_heads(const Tensor& query, const CachedQueries& queries, const AttentionCache& cache) const;
  /// cached_heads() of rows that each read the cache for themselves.
  AttentionResult heads_by_row(const Tensor& query, const SlotTable& table, const AttentionCache& cache,
                               bool with_weights) const;
  /// cached_heads() of a part of a prompt, which reads the keys and values in `slots`: those of all tokens up to the
  /// part's last one.
  Tensor heads_of_prompt(const Tensor& query, std::span<const int32_t> slots, const AttentionCache& cache) const;
  AttentionOptions attention_options(const AttentionMask& mask) const;
  AttentionOutput attend(const Tensor& q, const KeysAndValues& memory, const AttentionMask& mask) const;
  AttentionOutput attend(const HeadColumns& q, const HeadColumns& k, const HeadColumns& v,
                         const AttentionMask& mask) const;
  /// The positions of the rows if they are rotary, else none.
  Indices positions_for(const Sequences& sequences) const;

  /// `query_key_value` are three projections, adjacent in memory.
  MultiHeadAttention(const MultiHeadAttentionConfig& config, const std::vector<Projection>& query_key_value);
  AttentionOutput self_attention(const Tensor& x, const AttentionMask& mask) const;

  int64_t heads_, kv_heads_, d_head_;
  double scale_, soft_cap_;
  AttentionPositions positions_;
  Linear w_q_, w_k_, w_v_, w_o_;
  std::unique_ptr<LayerNorm> query_norm_, key_norm_;  // or null
  Parameter relative_keys_, relative_values_;         // [2 clip + 1, d_head], shared by the heads; or undefined
  Dropout dropout_;
};

}  // namespace attune
