#include "attune/nn/multi_head_attention.h"

#include <cmath>

namespace attune {
namespace {

int64_t key_heads(const MultiHeadAttentionConfig& config) {
  if (config.heads < 1 || config.d_model % config.heads != 0)
    fail<ConfigError>("d_model = {} is not divisible by heads = {}", config.d_model, config.heads);
  const int64_t kv_heads = config.kv_heads > 0 ? config.kv_heads : config.heads;
  if (config.kv_heads < 0 || config.heads % kv_heads != 0)
    fail<ConfigError>("heads = {} are not divisible by kv_heads = {}", config.heads, config.kv_heads);
  return kv_heads;
}

Tensor relative_table(int64_t clip, int64_t d_head) {
  return clip > 0 ? Tensor::zeros({2 * clip + 1, d_head}) : Tensor{};
}

}  // namespace

MultiHeadAttention::MultiHeadAttention(const MultiHeadAttentionConfig& config)
    : heads_(config.heads),
      kv_heads_(key_heads(config)),
      d_head_(config.d_model / config.heads),
      places_(config.places),
      w_q_(config.d_model, config.d_model, config.query_key_value_bias),
      w_k_(config.d_model, kv_heads_ * d_head_, config.query_key_value_bias),
      w_v_(config.d_model, kv_heads_ * d_head_, config.query_key_value_bias),
      w_o_(config.d_model, config.d_model, config.output_bias),
      relative_keys_(relative_table(config.places.relative_clip, d_head_)),
      relative_values_(relative_table(config.places.relative_clip, d_head_)),
      dropout_(config.dropout) {}

Tensor MultiHeadAttention::with_rotary(const Tensor& heads, const Tensor& positions) const {
  return places_.rotary ? rotary(heads, positions, *places_.rotary) : heads;
}

Tensor MultiHeadAttention::operator()(const Tensor& query, const Tensor& memory, const AttentionMask& mask) const {
  Tensor q = w_q_(query).reshape({-1, heads_, d_head_});
  Tensor k = w_k_(memory).reshape({-1, kv_heads_, d_head_});
  const Tensor v = w_v_(memory).reshape({-1, kv_heads_, d_head_});
  if (places_.rotary) {
    q = with_rotary(q, positions_of(mask.queries));
    k = with_rotary(k, positions_of(mask.keys));
  }
  const Tensor heads = attention(q, k, v,
                                 {.query_sequences = mask.queries,
                                  .key_sequences = mask.keys,
                                  .causal = mask.causal,
                                  .mask = mask.allowed,
                                  .pattern = places_.pattern,
                                  .alibi = places_.alibi,
                                  .relative_keys = relative_keys_,
                                  .relative_values = relative_values_,
                                  .dropout = dropout_.mask(),
                                  .weights = mask.weights});
  return w_o_(heads.reshape({-1, heads_ * d_head_}));
}

AttentionCache MultiHeadAttention::make_cache() const {
  const DType dtype = w_k_.weight().dtype();
  return {PagedRows(kv_heads_ * d_head_, dtype), PagedRows(kv_heads_ * d_head_, dtype)};
}

int64_t MultiHeadAttention::append(const Tensor& memory, const Tensor& positions, AttentionCache& cache) const {
  const Tensor k = with_rotary(w_k_(memory).reshape({-1, kv_heads_, d_head_}), positions);
  cache.values.append(w_v_(memory));
  return cache.keys.append(k.reshape({-1, kv_heads_ * d_head_}));
}

Tensor MultiHeadAttention::attend(const Tensor& query, const Tensor& positions, const AttentionCache& cache,
                                  const SlotTable& table) const {
  const Tensor q = with_rotary(w_q_(query).reshape({-1, heads_, d_head_}), positions);
  const Tensor heads = cached_attention(q, cache.keys, cache.values, table,
                                        {.kv_heads = kv_heads_,
                                         .scale = 1.0 / std::sqrt(static_cast<double>(d_head_)),
                                         .pattern = places_.pattern,
                                         .alibi = places_.alibi,
                                         .relative_keys = relative_keys_,
                                         .relative_values = relative_values_});
  return w_o_(heads.reshape({-1, heads_ * d_head_}));
}

void MultiHeadAttention::visit(Visitor& v) {
  v("w_q", w_q_);
  v("w_k", w_k_);
  v("w_v", w_v_);
  v("w_o", w_o_);
  if (relative_keys_.defined()) {
    v("relative_keys", relative_keys_);
    v("relative_values", relative_values_);
  }
  v("dropout", dropout_);
}

}  // namespace attune
