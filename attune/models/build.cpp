// The one place where models are put together from their configuration.

#include <cmath>

#include "attune/models/transformer.h"
#include "attune/nn/multi_head_attention.h"
#include "attune/nn/multi_head_latent_attention.h"

namespace attune {
namespace {

std::unique_ptr<Attention> build_attention(const AttentionKind& kind, const TransformerConfig& c) {
  if (const auto* latent = std::get_if<MultiHeadLatent>(&kind)) {
    return std::make_unique<MultiHeadLatentAttention>(
        MultiHeadLatentAttentionConfig{.d_model = c.d_model,
                                       .heads = c.heads,
                                       .latent_dim = latent_dim(*latent, c.d_model),
                                       .dropout = c.attention_dropout});
  }
  return std::make_unique<MultiHeadAttention>(MultiHeadAttentionConfig{
      .d_model = c.d_model, .heads = c.heads, .bias = std::get<MultiHead>(kind).bias, .dropout = c.attention_dropout});
}

struct LayerConfigs {
  FeedForwardConfig feed_forward;
  ResidualConnectionConfig residual;
};

LayerConfigs layer_configs(const TransformerConfig& c) {
  const LayerNormOptions norm{
      .form = c.layer_norm == LayerNormForm::unbiased_std ? NormForm::unbiased_std : NormForm::variance,
      .epsilon = c.layer_norm_epsilon};
  return {
      .feed_forward = {.d_model = c.d_model,
                       .d_ff = c.d_ff,
                       .activation =
                           c.activation == Activation::relu ? FeedForwardActivation::relu : FeedForwardActivation::gelu,
                       .dropout = c.activation_dropout},
      .residual = {
          .d_model = c.d_model, .dropout = c.dropout, .pre_norm = c.norm == NormPlacement::pre, .layer_norm = norm}};
}

// After pre-norm layers the sum of all sublayers is not normalised yet.
std::unique_ptr<LayerNorm> build_final_norm(const TransformerConfig& c, const LayerConfigs& configs) {
  if (c.norm == NormPlacement::post || !c.final_norm) return nullptr;
  return std::make_unique<LayerNorm>(c.d_model, configs.residual.layer_norm);
}

int64_t attention_parameters(const AttentionKind& kind, int64_t d) {
  if (const auto* latent = std::get_if<MultiHeadLatent>(&kind)) return 2 * d * d + 3 * d * latent_dim(*latent, d);
  return 4 * d * d + (std::get<MultiHead>(kind).bias ? 4 * d : 0);
}

}  // namespace

std::unique_ptr<Transformer> build_transformer(const TransformerConfig& c, uint64_t seed) {
  c.validate();
  const LayerConfigs configs = layer_configs(c);
  Transformer::Parts parts;
  parts.source_embedding = std::make_unique<InputEmbedding>(c.source_vocab, c.d_model);
  parts.target_embedding = c.share_embeddings ? std::make_unique<InputEmbedding>(parts.source_embedding->weight())
                                              : std::make_unique<InputEmbedding>(c.target_vocab, c.d_model);
  parts.source_position = std::make_unique<PositionalEncoding>(c.d_model, c.dropout);
  parts.target_position = std::make_unique<PositionalEncoding>(c.d_model, c.dropout);

  std::vector<std::unique_ptr<EncoderLayer>> encoder_layers;
  std::vector<std::unique_ptr<DecoderLayer>> decoder_layers;
  for (int64_t i = 0; i < c.layers; ++i) {
    encoder_layers.push_back(std::make_unique<EncoderLayer>(build_attention(c.encoder_attention, c),
                                                            configs.feed_forward, configs.residual));
    decoder_layers.push_back(std::make_unique<DecoderLayer>(build_attention(c.decoder_attention, c),
                                                            build_attention(c.cross_attention, c), configs.feed_forward,
                                                            configs.residual));
  }
  parts.encoder = std::make_unique<Encoder>(std::move(encoder_layers), build_final_norm(c, configs));
  parts.decoder = std::make_unique<Decoder>(std::move(decoder_layers), build_final_norm(c, configs));
  parts.projection = c.share_projection ? std::make_unique<ProjectionLayer>(parts.target_embedding->weight())
                                        : std::make_unique<ProjectionLayer>(c.d_model, c.target_vocab);

  const Tensor source_table = parts.source_embedding->weight(), target_table = parts.target_embedding->weight();
  auto model = std::make_unique<Transformer>(c, std::move(parts));
  initialize_parameters(*model, seed);
  if (c.embedding_initialization == EmbeddingInitialization::normal) {
    const double deviation = 1 / std::sqrt(static_cast<double>(c.d_model));
    constexpr uint64_t kSourceStream = uint64_t{1} << 32,
                       kTargetStream = kSourceStream + 1;  // beyond those of the matrices
    initialize_normal(target_table, deviation, seed, kTargetStream);
    initialize_normal(source_table, deviation, seed, kSourceStream);
  }
  return model;
}

int64_t parameter_count(const TransformerConfig& c) {
  const int64_t norm = 2 * c.d_model;
  const int64_t feed_forward = 2 * c.d_model * c.d_ff + c.d_ff + c.d_model;
  const int64_t encoder_layer = attention_parameters(c.encoder_attention, c.d_model) + feed_forward + 2 * norm;
  const int64_t decoder_layer = attention_parameters(c.decoder_attention, c.d_model) +
                                attention_parameters(c.cross_attention, c.d_model) + feed_forward + 3 * norm;
  const int64_t final_norms = c.norm == NormPlacement::pre && c.final_norm ? 2 * norm : 0;
  const int64_t embeddings = (c.source_vocab + (c.share_embeddings ? 0 : c.target_vocab)) * c.d_model;
  const int64_t projection = (c.share_projection ? 0 : c.target_vocab * c.d_model) + c.target_vocab;
  return c.layers * (encoder_layer + decoder_layer) + final_norms + embeddings + projection;
}

}  // namespace attune
