// Counts the parameters of a model from its configuration alone.

#include "attune/models/config.h"
#include "attune/models/settings.h"

namespace attune {
namespace {

int64_t attention_parameters(const AttentionKind& kind, const AttentionSetting& setting) {
  return std::visit([&](const auto& attention) { return attention.parameter_count(setting); }, kind);
}

int64_t norm_parameters(const TransformerConfig& c) {
  return LayerNorm::parameter_count(c.d_model, c.norm_form, c.norm_bias);
}

// The pooler, or the transform of an encoder_masked_lm: a product with so many outputs, and perhaps a norm.
int64_t transform_parameters(int64_t out, const TransformerConfig& c) {
  return out * (c.d_model + (c.transform_bias ? 1 : 0)) +
         (c.transform_norm ? LayerNorm::parameter_count(out, c.norm_form, c.norm_bias) : 0);
}

// The parameters of a stack's embeddings without the table of tokens: types, positions, norm and projection.
int64_t position_parameters(const TransformerConfig& c) {
  const int64_t width = c.position_width();
  const bool bias = c.architecture != Architecture::decoder_lm;  // of the projection
  return c.token_types * width + embedding_parameters(c.positions, position_setting(c)) +
         (c.embedding_norm ? LayerNorm::parameter_count(width, c.norm_form, c.norm_bias) : 0) +
         (c.embedding_dim > 0 ? c.d_model * (c.embedding_dim + (bias ? 1 : 0)) : 0);
}

// The layers of a stack that have parameters of their own.
std::vector<ParameterCounts::Layer> layers(const AttentionKind& attention, const TransformerConfig& c) {
  const FeedForwardConfig network = feed_forward_config(c);
  std::vector<ParameterCounts::Layer> all;
  for (int64_t i = 0; i < c.distinct_layers(); ++i) {
    const int64_t feed_forward = parameter_count(c.feed_forward, network, i);
    all.push_back({.self_attention = attention_parameters(attention, self_attention_setting(c.of_layer(i))),
                   .feed_forward = feed_forward,
                   .norms = (c.norm == NormPlacement::sandwich ? 4 : 2) * norm_parameters(c),
                   .idle = feed_forward - active_parameter_count(c.feed_forward, network, i)});
  }
  return all;
}

int64_t projection_parameters(int64_t vocab, const TransformerConfig& c) {
  return (c.share_projection ? 0 : vocab * c.embedding_width()) + (c.projection_bias ? vocab : 0);
}

}  // namespace

ParameterCounts count_parameters(const TransformerConfig& c) {
  const int64_t final_norm = c.norm != NormPlacement::post && c.final_norm ? norm_parameters(c) : 0;
  ParameterCounts counts;
  if (c.architecture == Architecture::encoder_decoder) {
    const TransformerConfig decoder = c.of_decoder();
    counts.encoder_layers = layers(c.encoder_attention, c);
    counts.decoder_layers = layers(c.decoder_attention, decoder);
    for (ParameterCounts::Layer& layer : counts.decoder_layers) {
      layer.cross_attention = attention_parameters(c.cross_attention, cross_attention_setting(decoder));
      layer.norms += (c.norm == NormPlacement::sandwich ? 2 : 1) * norm_parameters(c);
    }
    counts.source_embedding = c.source_vocab * c.d_model + position_parameters(c);
    counts.target_embedding = (c.share_embeddings ? 0 : c.target_vocab * c.d_model) + position_parameters(c);
    counts.final_norms = 2 * final_norm;
    counts.encoder_bias = bias_parameters(c.positions, c.heads);
    counts.decoder_bias = bias_parameters(c.positions, decoder.heads);
    counts.projection = projection_parameters(c.target_vocab, c);
    return counts;
  }
  const bool decoder = c.architecture == Architecture::decoder_lm;
  (decoder ? counts.decoder_layers : counts.encoder_layers) = layers(c.attention, c);
  counts.source_embedding = c.vocab * c.embedding_width() + position_parameters(c);
  counts.final_norms = final_norm - (c.first_norm ? 0 : norm_parameters(c));
  (decoder ? counts.decoder_bias : counts.encoder_bias) = bias_parameters(c.positions, c.heads);
  if (c.architecture == Architecture::encoder_classifier) {
    const auto labels = static_cast<int64_t>(c.labels.size());
    counts.projection = labels * (c.d_model + 1) + (c.pooler ? transform_parameters(c.d_model, c) : 0);
  } else if (c.architecture != Architecture::encoder) {
    const int64_t width = c.embedding_width();
    counts.projection = projection_parameters(c.vocab, c);
    if (decoder && c.embedding_dim > 0) counts.projection += width * c.d_model;
    if (!decoder && c.prediction_transform) counts.projection += transform_parameters(width, c);
  }
  return counts;
}

}  // namespace attune
