#include "attune/nn/multi_head_latent_attention.h"

#include <cmath>

namespace attune {

MultiHeadLatentAttention::MultiHeadLatentAttention(const MultiHeadLatentAttentionConfig& config)
    : config_(config),
      w_q_(config.d_model, config.d_model, false),
      w_kv_compress_(config.d_model, config.latent_dim, false),
      w_k_decompress_(config.latent_dim, config.d_model, false),
      w_v_decompress_(config.latent_dim, config.d_model, false),
      w_o_(config.d_model, config.d_model, false),
      dropout_(config.dropout) {
  if (config.heads < 1 || config.d_model % config.heads != 0)
    fail<ConfigError>("d_model = {} is not divisible by heads = {}", config.d_model, config.heads);
}

Tensor MultiHeadLatentAttention::operator()(const Tensor& query, const Tensor& memory,
                                            const AttentionMask& mask) const {
  const Tensor latent = w_kv_compress_(memory);
  const Tensor heads =
      attention(split_heads(w_q_(query)), split_heads(w_k_decompress_(latent)), split_heads(w_v_decompress_(latent)),
                {.query_sequences = mask.queries,
                 .key_sequences = mask.keys,
                 .causal = mask.causal,
                 .mask = mask.allowed,
                 .dropout = dropout_.mask(),
                 .weights = mask.weights});
  return w_o_(heads.reshape({-1, config_.d_model}));
}

AttentionCache MultiHeadLatentAttention::make_cache() const {
  return {PagedRows(config_.latent_dim, w_kv_compress_.weight().dtype()), PagedRows()};
}

int64_t MultiHeadLatentAttention::append(const Tensor& memory, AttentionCache& cache) const {
  return cache.keys.append(w_kv_compress_(memory));
}

Tensor MultiHeadLatentAttention::attend(const Tensor& query, const AttentionCache& cache,
                                        const SlotTable& table) const {
  const double scale = 1.0 / std::sqrt(static_cast<double>(config_.d_model / config_.heads));
  // Every head reads the same latents, as keys and as values: attention with one key head of latent_dim numbers.
  const Tensor absorbed_query = heads_times_rows(split_heads(w_q_(query)), w_k_decompress_.weight());
  const Tensor latents = cached_attention(absorbed_query, cache.keys, cache.keys, table, {.scale = scale});
  return w_o_(heads_times_columns(latents, w_v_decompress_.weight()).reshape({-1, config_.d_model}));
}

void MultiHeadLatentAttention::visit(Visitor& v) {
  v("w_q", w_q_);
  v("w_kv_compress", w_kv_compress_);
  v("w_k_decompress", w_k_decompress_);
  v("w_v_decompress", w_v_decompress_);
  v("w_o", w_o_);
  v("dropout", dropout_);
}

}  // namespace attune
