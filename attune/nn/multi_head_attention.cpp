#include "attune/nn/multi_head_attention.h"

#include <cmath>

namespace attune {

MultiHeadAttention::MultiHeadAttention(const MultiHeadAttentionConfig& config)
    : config_(config),
      w_q_(config.d_model, config.d_model, config.bias),
      w_k_(config.d_model, config.d_model, config.bias),
      w_v_(config.d_model, config.d_model, config.bias),
      w_o_(config.d_model, config.d_model, config.bias),
      dropout_(config.dropout) {
  if (config.heads < 1 || config.d_model % config.heads != 0)
    fail<ConfigError>("d_model = {} is not divisible by heads = {}", config.d_model, config.heads);
}

Tensor MultiHeadAttention::operator()(const Tensor& query, const Tensor& memory, const AttentionMask& mask) const {
  const Tensor heads = attention(split_heads(w_q_(query)), split_heads(w_k_(memory)), split_heads(w_v_(memory)),
                                 {.query_sequences = mask.queries,
                                  .key_sequences = mask.keys,
                                  .causal = mask.causal,
                                  .mask = mask.allowed,
                                  .dropout = dropout_.mask(),
                                  .weights = mask.weights});
  return w_o_(heads.reshape({-1, config_.d_model}));
}

AttentionCache MultiHeadAttention::make_cache() const {
  const DType dtype = w_k_.weight().dtype();
  return {PagedRows(config_.d_model, dtype), PagedRows(config_.d_model, dtype)};
}

int64_t MultiHeadAttention::append(const Tensor& memory, AttentionCache& cache) const {
  cache.values.append(w_v_(memory));
  return cache.keys.append(w_k_(memory));
}

Tensor MultiHeadAttention::attend(const Tensor& query, const AttentionCache& cache, const SlotTable& table) const {
  const double scale = 1.0 / std::sqrt(static_cast<double>(config_.d_model / config_.heads));
  const Tensor heads = cached_attention(split_heads(w_q_(query)), cache.keys, cache.values, table,
                                        {.kv_heads = config_.heads, .scale = scale});
  return w_o_(heads.reshape({-1, config_.d_model}));
}

void MultiHeadAttention::visit(Visitor& v) {
  v("w_q", w_q_);
  v("w_k", w_k_);
  v("w_v", w_v_);
  v("w_o", w_o_);
  v("dropout", dropout_);
}

}  // namespace attune
