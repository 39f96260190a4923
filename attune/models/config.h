#pragma once
// What a Transformer is made of. Defaults are the base model of Vaswani et al. 2017, section 5 and table 3.

#include <cstdint>
#include <string>
#include <variant>

#include "attune/base/fields.h"

namespace attune {

/// Multi-head attention, Vaswani et al. 2017, section 3.2.2.
struct MultiHead {
  bool bias = true;  // on the four projections
  bool operator==(const MultiHead&) const = default;
};

/// Multi-head latent attention, DeepSeek-V2 2024, section 2.1.2 (without the decoupled rotary part).
struct MultiHeadLatent {
  int64_t latent_dim = 0;  // 0: d_model / 4
  bool operator==(const MultiHeadLatent&) const = default;
};

using AttentionKind = std::variant<MultiHead, MultiHeadLatent>;

enum class NormPlacement { pre, post };
enum class LayerNormForm {
  variance,      // (x - mean) / sqrt(variance + epsilon), Ba et al. 2016
  unbiased_std,  // (x - mean) / (std + epsilon), std with n - 1, as in The Annotated Transformer
};
enum class Activation { relu, gelu };
enum class EmbeddingInitialization {
  xavier,  // uniform, as every other matrix
  normal,  // N(0, 1 / d_model): once scaled by sqrt(d_model), embeddings are as large as the positions added to them
};

template <>
struct EnumNames<NormPlacement> {
  static constexpr std::pair<NormPlacement, const char*> values[] = {{NormPlacement::pre, "pre"},
                                                                     {NormPlacement::post, "post"}};
};
template <>
struct EnumNames<LayerNormForm> {
  static constexpr std::pair<LayerNormForm, const char*> values[] = {{LayerNormForm::variance, "variance"},
                                                                     {LayerNormForm::unbiased_std, "unbiased_std"}};
};
template <>
struct EnumNames<Activation> {
  static constexpr std::pair<Activation, const char*> values[] = {{Activation::relu, "relu"},
                                                                  {Activation::gelu, "gelu"}};
};
template <>
struct EnumNames<EmbeddingInitialization> {
  static constexpr std::pair<EmbeddingInitialization, const char*> values[] = {
      {EmbeddingInitialization::xavier, "xavier"}, {EmbeddingInitialization::normal, "normal"}};
};

struct TransformerConfig {
  int64_t source_vocab = 0;  // set from the tokenizer in training
  int64_t target_vocab = 0;
  int64_t d_model = 512;  // divisible by heads
  int64_t heads = 8;
  int64_t layers = 6;  // of the encoder and of the decoder
  int64_t d_ff = 2048;
  double dropout = 0.1;             // on embeddings and on the output of each sublayer, section 5.4
  double attention_dropout = 0.1;   // on the attention weights
  double activation_dropout = 0.1;  // inside the feed-forward network
  AttentionKind encoder_attention = MultiHead{};
  AttentionKind decoder_attention = MultiHead{};
  AttentionKind cross_attention = MultiHead{};
  NormPlacement norm = NormPlacement::pre;
  LayerNormForm layer_norm = LayerNormForm::variance;
  double layer_norm_epsilon = 1e-5;
  bool final_norm = true;  // pre-norm only: a LayerNorm after the last layer of each stack
  Activation activation = Activation::relu;
  EmbeddingInitialization embedding_initialization = EmbeddingInitialization::xavier;
  bool share_embeddings = false;  // source and target embeddings are one table; needs one vocabulary
  bool share_projection = false;  // the projection's weight is the target embedding, section 3.4

  /// Throws ConfigError naming the field and the value.
  void validate() const;
  bool operator==(const TransformerConfig&) const = default;
};

/// "multi_head" or "latent", or a table {kind = "latent", latent_dim = 64}.
Json write_variant(const AttentionKind& kind);
void read_variant(const Json& value, AttentionKind& kind, const std::string& where);
int64_t latent_dim(const MultiHeadLatent& latent, int64_t d_model);

template <class FieldVisitor>
void visit_fields(TransformerConfig& c, FieldVisitor& v) {
  v("source_vocab", c.source_vocab);
  v("target_vocab", c.target_vocab);
  v("d_model", c.d_model);
  v("heads", c.heads);
  v("layers", c.layers);
  v("d_ff", c.d_ff);
  v("dropout", c.dropout);
  v("attention_dropout", c.attention_dropout);
  v("activation_dropout", c.activation_dropout);
  v("encoder_attention", c.encoder_attention);
  v("decoder_attention", c.decoder_attention);
  v("cross_attention", c.cross_attention);
  v("norm", c.norm);
  v("layer_norm", c.layer_norm);
  v("layer_norm_epsilon", c.layer_norm_epsilon);
  v("final_norm", c.final_norm);
  v("activation", c.activation);
  v("embedding_initialization", c.embedding_initialization);
  v("share_embeddings", c.share_embeddings);
  v("share_projection", c.share_projection);
}

}  // namespace attune
