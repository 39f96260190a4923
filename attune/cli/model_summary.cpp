#include "attune/cli/model_summary.h"

namespace attune::cli {
namespace {

int64_t attention_parameters(const AttentionKind& kind, int64_t d) {
  if (const auto* latent = std::get_if<MultiHeadLatent>(&kind)) return 2 * d * d + 3 * d * latent_dim(*latent, d);
  return 4 * d * d + (std::get<MultiHead>(kind).bias ? 4 * d : 0);
}

// One latent, or a key and a value of d_model each.
int64_t cache_bytes(const AttentionKind& kind, int64_t d) {
  const auto* latent = std::get_if<MultiHeadLatent>(&kind);
  return static_cast<int64_t>(sizeof(float)) * (latent != nullptr ? latent_dim(*latent, d) : 2 * d);
}

}  // namespace

ModelSummary summarize(const TransformerConfig& c) {
  c.validate();
  const int64_t d = c.d_model, norm = 2 * d, feed_forward = 2 * d * c.d_ff + c.d_ff + d;
  ModelSummary summary;
  summary.layers = c.layers;
  summary.source_embedding = c.source_vocab * d;
  summary.target_embedding = c.share_embeddings ? 0 : c.target_vocab * d;
  summary.encoder_layer = {.self_attention = attention_parameters(c.encoder_attention, d),
                           .cross_attention = 0,
                           .feed_forward = feed_forward,
                           .norms = 2 * norm};
  summary.decoder_layer = {.self_attention = attention_parameters(c.decoder_attention, d),
                           .cross_attention = attention_parameters(c.cross_attention, d),
                           .feed_forward = feed_forward,
                           .norms = 3 * norm};
  summary.final_norm = c.norm == NormPlacement::pre && c.final_norm ? norm : 0;
  summary.projection = (c.share_projection ? 0 : c.target_vocab * d) + c.target_vocab;
  summary.self_cache_bytes = c.layers * cache_bytes(c.decoder_attention, d);
  summary.cross_cache_bytes = c.layers * cache_bytes(c.cross_attention, d);
  summary.standard_cache_bytes = c.layers * cache_bytes(MultiHead{}, d);
  return summary;
}

}  // namespace attune::cli
