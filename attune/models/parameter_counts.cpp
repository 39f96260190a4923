// What a model costs, from its configuration alone.

#include "attune/models/config.h"

namespace attune {
namespace {

int64_t attention_parameters(const MultiHead& attention, const TransformerConfig& c) {
  const int64_t d = c.d_model, keys = kv_heads(attention, c.heads) * c.head_dim();
  return 2 * d * d + 2 * d * keys + (has_query_key_value_bias(attention) ? d + 2 * keys : 0) +
         (has_output_bias(attention) ? d : 0);
}

int64_t attention_parameters(const MultiHeadLatent& attention, const TransformerConfig& c) {
  const int64_t d = c.d_model, latent = latent_dim(attention, d), query = attention.query_latent_dim;
  const int64_t query_in = query > 0 ? query : d;
  const int64_t norms = attention.latent_norm ? latent + query : 0;
  const int64_t rotary = attention.rotary_dim * (query_in * c.heads + d);
  return d * query + query_in * d + 3 * d * latent + d * d + norms + rotary;
}

int64_t attention_parameters(const AttentionKind& kind, const TransformerConfig& c) {
  return std::visit([&](const auto& attention) { return attention_parameters(attention, c); }, kind);
}

// Two tables in each self-attention.
int64_t relative_parameters(const TransformerConfig& c) {
  const auto* relative = std::get_if<RelativePositions>(&c.positions);
  return relative != nullptr ? 2 * (2 * relative->clip + 1) * c.head_dim() : 0;
}

int64_t norm_parameters(const TransformerConfig& c) {
  return c.norm_form == NormForm::rms ? c.d_model : 2 * c.d_model;
}

int64_t feed_forward_parameters(const TransformerConfig& c) {
  const int64_t inner = gate_of(c.activation) ? 2 * c.d_ff : c.d_ff;
  return c.d_model * (inner + c.d_ff) + (c.feed_forward_bias ? inner + c.d_model : 0);
}

// Of a stack's embeddings beside the table itself.
int64_t position_parameters(const TransformerConfig& c) {
  const auto* learned = std::get_if<LearnedPositions>(&c.positions);
  return (learned != nullptr ? c.max_positions(*learned) * c.d_model : 0) + (c.embedding_norm ? norm_parameters(c) : 0);
}

ParameterCounts::Layer layer(const AttentionKind& attention, const TransformerConfig& c) {
  return {.self_attention = attention_parameters(attention, c) + relative_parameters(c),
          .feed_forward = feed_forward_parameters(c),
          .norms = 2 * norm_parameters(c)};
}

int64_t projection_parameters(int64_t vocab, const TransformerConfig& c) {
  return (c.share_projection ? 0 : vocab * c.d_model) + (c.projection_bias ? vocab : 0);
}

}  // namespace

ParameterCounts count_parameters(const TransformerConfig& c) {
  const int64_t distinct = c.share_layers ? 1 : c.layers;
  const int64_t final_norm = c.norm == NormPlacement::pre && c.final_norm ? norm_parameters(c) : 0;
  ParameterCounts counts;
  if (c.architecture == Architecture::encoder_decoder) {
    counts.encoder_layers = counts.decoder_layers = distinct;
    counts.encoder_layer = layer(c.encoder_attention, c);
    counts.decoder_layer = layer(c.decoder_attention, c);
    counts.decoder_layer.cross_attention = attention_parameters(c.cross_attention, c);
    counts.decoder_layer.norms += norm_parameters(c);
    counts.source_embedding = c.source_vocab * c.d_model + position_parameters(c);
    counts.target_embedding = (c.share_embeddings ? 0 : c.target_vocab * c.d_model) + position_parameters(c);
    counts.final_norms = 2 * final_norm;
    counts.projection = projection_parameters(c.target_vocab, c);
    return counts;
  }
  const bool decoder = c.architecture == Architecture::decoder_lm;
  (decoder ? counts.decoder_layers : counts.encoder_layers) = distinct;
  (decoder ? counts.decoder_layer : counts.encoder_layer) = layer(c.attention, c);
  counts.source_embedding = c.vocab * c.d_model + position_parameters(c);
  counts.final_norms = final_norm;
  if (c.architecture == Architecture::encoder_classifier) {
    const auto labels = static_cast<int64_t>(c.labels.size());
    counts.projection = labels * (c.d_model + 1) + (c.pooler ? c.d_model * (c.d_model + 1) : 0);
  } else {
    counts.projection = projection_parameters(c.vocab, c);
  }
  return counts;
}

int64_t cache_width(const AttentionKind& kind, int64_t d_model, int64_t heads) {
  if (const auto* latent = std::get_if<MultiHeadLatent>(&kind))
    return latent_dim(*latent, d_model) + latent->rotary_dim;
  return 2 * kv_heads(std::get<MultiHead>(kind), heads) * (d_model / heads);
}

}  // namespace attune
