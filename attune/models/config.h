#pragma once
// The configuration of a Transformer. Defaults are the base model of Vaswani et al. 2017, section 5 and table 3.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "attune/base/fields.h"
#include "attune/models/kinds/attention_kind.h"
#include "attune/models/kinds/feed_forward_kind.h"
#include "attune/models/kinds/position_kind.h"
#include "attune/nn/layer_norm.h"

namespace [[gnu::visibility("default")]] attune {

enum class Architecture {
  encoder_decoder,     // translation: Vaswani et al. 2017
  encoder_classifier,  // one label for a text: Devlin et al. 2019
  encoder_masked_lm,   // the masked tokens: pretraining of a classifier, Devlin et al. 2019, section 3.1
  encoder,             // a state for each token, for embeddings of texts: Devlin et al. 2019
  decoder_lm,          // the next token: Radford et al. 2019
};

enum class NormPlacement { pre, post, sandwich };  // see ResidualConnection
enum class LayerAttention {
  global,  // `attention` and `positions`
  local,   // the same attention in a window of local_window, and local_positions
};
enum class Initialization {
  xavier,         // uniform, Glorot and Bengio 2010: within sqrt(6 / (in + out))
  normal,         // N(0, 0.02^2), Devlin et al. 2019
  normal_scaled,  // the same, last weights of sublayers divided by sqrt(2 layers), Radford et al. 2019
};
enum class EmbeddingInitialization {
  as_matrices,  // like every other matrix
  normal,       // N(0, 1 / width of the table): when they are scaled, they are as large as the positions added to them
};
enum class Pooling { first, mean };
enum class LabelScores {
  softmax,  // probabilities of labels that exclude each other
  sigmoid,  // each label has a probability of its own: several may hold, or there is only one
  none,     // regression: the logits are the results, and `labels` their names
};

struct TransformerConfig {
  Architecture architecture = Architecture::encoder_decoder;
  int64_t source_vocab = 0;  // encoder_decoder; set from the tokenizer in training
  int64_t target_vocab = 0;
  int64_t vocab = 0;      // the other architectures; set likewise
  int64_t d_model = 512;  // divisible by heads
  int64_t heads = 8;
  int64_t layers = 6;
  int64_t d_ff = 2048;
  // Of the decoder of an encoder_decoder, where it has others; 0: those above.
  int64_t decoder_heads = 0, decoder_layers = 0, decoder_d_ff = 0;
  double dropout = 0.1;                           // on embeddings and on the output of each sublayer, section 5.4
  double attention_dropout = 0.1;                 // on the attention weights
  double activation_dropout = 0.1;                // inside the feed-forward network
  AttentionKind encoder_attention = MultiHead{};  // encoder_decoder
  AttentionKind decoder_attention = MultiHead{};
  AttentionKind cross_attention = MultiHead{};
  AttentionKind attention = MultiHead{};  // the other architectures
  PositionKind positions = SinusoidalPositions{};
  /// The attention of each layer, Beltagy et al. 2020; Gemma Team 2024. Empty: global in all of them.
  std::vector<LayerAttention> layer_attention = {};
  int64_t local_window = 0;                        // a query sees the keys at a distance below this
  PositionKind local_positions = RotaryOptions{};  // "rotary" or "none"
  NormPlacement norm = NormPlacement::pre;
  NormForm norm_form = NormForm::variance;
  double norm_epsilon = 1e-5;
  bool norm_bias = true;           // norms of the variance form have a bias
  bool first_norm = true;          // pre-norm only: a norm before the first layer's self-attention
  bool final_norm = true;          // not for post-norm: a norm after the last layer of each stack
  bool parallel_residual = false;  // x + attention(norm(x)) + feed_forward(norm(x)), Wang and Komatsuzaki 2021 (GPT-J)
  FeedForwardActivation activation = FeedForwardActivation::relu;
  bool feed_forward_bias = true;
  FeedForwardKind feed_forward = Dense{};
  bool scale_embeddings = true;  // by the root of the width of their table, sqrt(d_model) in section 3.4
  bool embedding_norm = false;   // a norm on the sum of embeddings and positions, Devlin et al. 2019
  /// The width of the tables of embeddings, which is then projected to d_model; 0: d_model, and no projection. In an
  /// encoder it is that of all tables, and their sum is projected, Lan et al. 2020; in a decoder_lm that of tokens
  /// alone, which are projected, as are the states in front of the projection to logits, Zhang et al. 2022 (OPT).
  int64_t embedding_dim = 0;
  int64_t token_types = 0;  // of an encoder: a table for the segments of a text, Devlin et al. 2019; 0: none
  Initialization initialization = Initialization::xavier;
  EmbeddingInitialization embedding_initialization = EmbeddingInitialization::as_matrices;
  bool share_embeddings = false;  // encoder_decoder: source and target share one embedding table and one vocabulary
  bool share_projection = false;  // the projection's weight is the (target) embedding, section 3.4
  /// Layers of a stack share parameters, Lan et al. 2020 (ALBERT): all of them, or those of each of layer_groups groups
  /// of equal size, one after the other (section 4.5 there). A group repeats a block of layer_block layers. Both are 1
  /// without share_layers.
  bool share_layers = false;
  int64_t layer_groups = 1, layer_block = 1;
  bool projection_bias = true;
  /// encoder_decoder: the decoder layer, from 1, with the head of cross-attention, from 1, that was trained on word
  /// alignments, Chen et al. 2016; 0: none.
  int64_t alignment_layer = 0, alignment_head = 1;
  double logit_scale = 1;         // the last states are multiplied with it, Raffel et al. 2020: 1 / sqrt(d_model)
  double logit_soft_cap = 0;      // c > 0: logits l become c tanh(l / c), Gemma Team 2024; 0: none
  int64_t context_length = 1024;  // decoder_lm: the most tokens that a prediction may see
  std::vector<std::string> labels = {};             // encoder_classifier: names, in the order of the logits
  LabelScores label_scores = LabelScores::softmax;  // encoder_classifier: how logits become scores
  Pooling pooling = Pooling::first;   // encoder_classifier: the first state or the mean represents the text
  bool pooler = false;                // encoder_classifier: tanh(W x + b) before the head, Devlin et al. 2019
  bool prediction_transform = false;  // encoder_masked_lm: the same before the projection
  Activation transform_activation = Activation::tanh;  // of pooler and prediction_transform ...
  bool transform_bias = true;
  bool transform_norm = false;  // ... and whether a norm follows

  /// Throws ConfigError naming the field and the value, or the two fields that exclude each other.
  void validate() const;
  bool operator==(const TransformerConfig&) const = default;

  /// Whether the model predicts numbers instead of labels.
  bool is_regression() const {
    return architecture == Architecture::encoder_classifier && label_scores == LabelScores::none;
  }
  /// The labels of a classifier for which none are given, {"0", "1"}; for a regression the name of its number,
  /// {"score"}.
  std::vector<std::string> default_labels() const;
  /// The width of a head of the (encoder's) queries.
  int64_t head_dim() const;
  /// The first layer that has the parameters of layer i: i itself unless layers share parameters.
  int64_t first_with_parameters_of(int64_t i) const;
  /// The number of layers with parameters of their own.
  int64_t distinct_layers() const { return share_layers ? layer_groups * layer_block : layers; }
  /// The width of the table of tokens.
  int64_t embedding_width() const { return embedding_dim > 0 ? embedding_dim : d_model; }
  /// The width to which types and positions are added.
  int64_t position_width() const { return architecture == Architecture::decoder_lm ? d_model : embedding_width(); }
  /// This configuration with the attention and positions of layer i in place of those for all layers.
  TransformerConfig of_layer(int64_t i) const;
  /// The most tokens of a sequence that `positions` allow; see longest_sequence() in position_kind.h.
  int64_t longest_sequence() const;
  /// This configuration with the heads, layers and d_ff of the decoder.
  TransformerConfig of_decoder() const;
};

/// Numbers of parameters by component, computed without building the model.
struct ParameterCounts {
  struct Layer {
    int64_t self_attention = 0;
    int64_t cross_attention = 0;  // in the decoder of an encoder_decoder
    int64_t feed_forward = 0;
    int64_t norms = 0;
    int64_t idle = 0;  // of feed_forward: those of experts that a token does not choose
    int64_t total() const { return self_attention + cross_attention + feed_forward + norms; }
  };
  std::vector<Layer> encoder_layers = {}, decoder_layers = {};  // that have parameters of their own
  int64_t encoder_bias = 0, decoder_bias = 0;                   // that the layers share, see RelativeBiasPositions
  int64_t source_embedding = 0;  // with positions and norm; the embedding of a model with one stack
  int64_t target_embedding = 0;  // without the table if it is shared with the source
  int64_t final_norms = 0;       // of all stacks; less the norm that first_norm = false leaves out
  int64_t projection = 0;        // or the classifier's head and pooler; without a weight shared with an embedding
  int64_t encoder() const { return sum(encoder_layers, &Layer::total) + encoder_bias; }
  int64_t decoder() const { return sum(decoder_layers, &Layer::total) + decoder_bias; }
  int64_t total() const {
    return source_embedding + target_embedding + encoder() + decoder() + final_norms + projection;
  }
  /// Those that take part in the computation of one token.
  int64_t active() const { return total() - sum(encoder_layers, &Layer::idle) - sum(decoder_layers, &Layer::idle); }

 private:
  template <class Number>
  static int64_t sum(const std::vector<Layer>& layers, Number number) {
    int64_t all = 0;
    for (const Layer& layer : layers) all += std::invoke(number, layer);
    return all;
  }
};
ParameterCounts count_parameters(const TransformerConfig& config);

template <>
struct EnumNames<Architecture> {
  static constexpr std::pair<Architecture, const char*> values[] = {
      {Architecture::encoder_decoder, "encoder_decoder"},
      {Architecture::encoder_classifier, "encoder_classifier"},
      {Architecture::encoder_masked_lm, "encoder_masked_lm"},
      {Architecture::encoder, "encoder"},
      {Architecture::decoder_lm, "decoder_lm"}};
};
template <>
struct EnumNames<NormPlacement> {
  static constexpr std::pair<NormPlacement, const char*> values[] = {
      {NormPlacement::pre, "pre"}, {NormPlacement::post, "post"}, {NormPlacement::sandwich, "sandwich"}};
};
template <>
struct EnumNames<LayerAttention> {
  static constexpr std::pair<LayerAttention, const char*> values[] = {{LayerAttention::global, "global"},
                                                                      {LayerAttention::local, "local"}};
};
template <>
struct EnumNames<Activation> {
  static constexpr std::pair<Activation, const char*> values[] = {{Activation::none, "none"},
                                                                  {Activation::relu, "relu"},
                                                                  {Activation::gelu, "gelu"},
                                                                  {Activation::gelu_tanh, "gelu_tanh"},
                                                                  {Activation::gelu_sigmoid, "gelu_sigmoid"},
                                                                  {Activation::silu, "silu"},
                                                                  {Activation::tanh, "tanh"}};
};
template <>
struct EnumNames<Initialization> {
  static constexpr std::pair<Initialization, const char*> values[] = {{Initialization::xavier, "xavier"},
                                                                      {Initialization::normal, "normal"},
                                                                      {Initialization::normal_scaled, "normal_scaled"}};
};
template <>
struct EnumNames<EmbeddingInitialization> {
  static constexpr std::pair<EmbeddingInitialization, const char*> values[] = {
      {EmbeddingInitialization::as_matrices, "as_matrices"}, {EmbeddingInitialization::normal, "normal"}};
};
template <>
struct EnumNames<Pooling> {
  static constexpr std::pair<Pooling, const char*> values[] = {{Pooling::first, "first"}, {Pooling::mean, "mean"}};
};
template <>
struct EnumNames<LabelScores> {
  static constexpr std::pair<LabelScores, const char*> values[] = {
      {LabelScores::softmax, "softmax"}, {LabelScores::sigmoid, "sigmoid"}, {LabelScores::none, "none"}};
};
template <>
struct VariantNames<AttentionPattern> {
  static constexpr const char* values[] = {"full", "window", "strided", "fixed"};
};
/// Visits only the fields that the architecture has; in a file, any other field is an unknown key.
template <class FieldVisitor>
void visit_fields(TransformerConfig& c, FieldVisitor& v) {
  v("architecture", c.architecture);
  const bool two_stacks = c.architecture == Architecture::encoder_decoder;
  if (two_stacks) {
    v("source_vocab", c.source_vocab);
    v("target_vocab", c.target_vocab);
  } else {
    v("vocab", c.vocab);
  }
  v("d_model", c.d_model);
  v("heads", c.heads);
  v("layers", c.layers);
  v("d_ff", c.d_ff);
  if (two_stacks) {
    v("decoder_heads", c.decoder_heads);
    v("decoder_layers", c.decoder_layers);
    v("decoder_d_ff", c.decoder_d_ff);
  }
  v("dropout", c.dropout);
  v("attention_dropout", c.attention_dropout);
  v("activation_dropout", c.activation_dropout);
  if (two_stacks) {
    v("encoder_attention", c.encoder_attention);
    v("decoder_attention", c.decoder_attention);
    v("cross_attention", c.cross_attention);
  } else {
    v("attention", c.attention);
  }
  v("positions", c.positions);
  if (!two_stacks) {
    v("layer_attention", c.layer_attention);
    v("local_window", c.local_window);
    v("local_positions", c.local_positions);
  }
  v("norm", c.norm);
  v("norm_form", c.norm_form);
  v("norm_epsilon", c.norm_epsilon);
  v("norm_bias", c.norm_bias);
  if (!two_stacks) v("first_norm", c.first_norm);
  v("final_norm", c.final_norm);
  if (!two_stacks) v("parallel_residual", c.parallel_residual);
  v("activation", c.activation);
  v("feed_forward_bias", c.feed_forward_bias);
  v("feed_forward", c.feed_forward);
  v("scale_embeddings", c.scale_embeddings);
  v("embedding_norm", c.embedding_norm);
  if (!two_stacks) v("embedding_dim", c.embedding_dim);
  if (!two_stacks && c.architecture != Architecture::decoder_lm) v("token_types", c.token_types);
  v("initialization", c.initialization);
  v("embedding_initialization", c.embedding_initialization);
  if (two_stacks) {
    v("alignment_layer", c.alignment_layer);
    v("alignment_head", c.alignment_head);
    v("share_embeddings", c.share_embeddings);
  }
  if (c.architecture != Architecture::encoder_classifier && c.architecture != Architecture::encoder) {
    v("share_projection", c.share_projection);
    v("projection_bias", c.projection_bias);
    v("logit_scale", c.logit_scale);
    v("logit_soft_cap", c.logit_soft_cap);
  }
  v("share_layers", c.share_layers);
  v("layer_groups", c.layer_groups);
  v("layer_block", c.layer_block);
  if (c.architecture == Architecture::decoder_lm) v("context_length", c.context_length);
  if (c.architecture == Architecture::encoder_classifier) {
    v("labels", c.labels);
    v("label_scores", c.label_scores);
    v("pooling", c.pooling);
    v("pooler", c.pooler);
  }
  if (c.architecture == Architecture::encoder_masked_lm) v("prediction_transform", c.prediction_transform);
  if (c.architecture == Architecture::encoder_classifier || c.architecture == Architecture::encoder_masked_lm) {
    v("transform_activation", c.transform_activation);
    v("transform_bias", c.transform_bias);
    v("transform_norm", c.transform_norm);
  }
}

}  // namespace attune
