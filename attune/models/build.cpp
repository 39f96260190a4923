#include "attune/models/build.h"

#include <cmath>

#include "attune/base/fail.h"
#include "attune/models/settings.h"

namespace attune {
namespace {

const TransformerConfig& validated(const TransformerConfig& c, Architecture wanted) {
  if (c.architecture != wanted)
    fail<ConfigError>("architecture = {}: needs {}", enum_name(c.architecture), enum_name(wanted));
  c.validate();
  return c;
}

std::unique_ptr<Attention> build_attention(const AttentionKind& kind, AttentionSetting setting, int64_t layer) {
  setting.layer = layer;
  return std::visit([&](const auto& attention) { return attention.build(setting); }, kind);
}

// The layers of a stack; those that share parameters are the same object.
template <class Layer, class Make>
std::vector<std::shared_ptr<Layer>> build_layers(const TransformerConfig& c, Make&& make) {
  std::vector<std::shared_ptr<Layer>> layers;
  for (int64_t i = 0; i < c.layers; ++i) {
    const int64_t first = c.first_with_parameters_of(i);
    layers.push_back(first < i ? layers[static_cast<size_t>(first)] : make(i));
  }
  return layers;
}

// Pre-norm layers need it: without it the sum of all sublayers is not normalised.
std::unique_ptr<LayerNorm> build_final_norm(const TransformerConfig& c) {
  if (c.norm == NormPlacement::post || !c.final_norm) return nullptr;
  return std::make_unique<LayerNorm>(c.d_model, norm_config(c));
}

LayerOptions layer_options(const TransformerConfig& c, int64_t layer) {
  return {.parallel = c.parallel_residual, .attention_norm = layer > 0 || c.first_norm};
}

// `of_stack` is the stack's kind of attention where the architecture has several.
std::unique_ptr<Attention> build_self_attention(const AttentionKind* of_stack, const TransformerConfig& c,
                                                int64_t layer, const std::shared_ptr<RelativeBias>& bias) {
  const TransformerConfig own = c.of_layer(layer);
  return build_attention(of_stack ? *of_stack : own.attention, self_attention_setting(own, bias), layer);
}

std::unique_ptr<Encoder> build_encoder(const AttentionKind* of_stack, const TransformerConfig& c) {
  const auto bias = build_bias(c.positions, c.heads, true);
  const auto make = [&](int64_t layer) {
    return std::make_shared<EncoderLayer>(build_self_attention(of_stack, c, layer, bias),
                                          build(c.feed_forward, feed_forward_config(c), layer), residual_config(c),
                                          layer_options(c, layer));
  };
  return std::make_unique<Encoder>(build_layers<EncoderLayer>(c, make), build_final_norm(c), bias);
}

// `cross_attention` is null in a decoder-only model.
std::unique_ptr<Decoder> build_decoder(const AttentionKind* of_stack, const AttentionKind* cross_attention,
                                       const TransformerConfig& c) {
  const auto bias = build_bias(c.positions, c.heads, false);
  const auto make = [&](int64_t layer) {
    return std::make_shared<DecoderLayer>(
        build_self_attention(of_stack, c, layer, bias),
        cross_attention ? build_attention(*cross_attention, cross_attention_setting(c), layer) : nullptr,
        build(c.feed_forward, feed_forward_config(c), layer), residual_config(c), layer_options(c, layer));
  };
  return std::make_unique<Decoder>(build_layers<DecoderLayer>(c, make), build_final_norm(c), bias);
}

std::unique_ptr<Embeddings> build_embeddings(std::unique_ptr<InputEmbedding> token, const TransformerConfig& c) {
  const bool with_positions = is_added(c.positions) && !c.embedding_norm;  // one pass for both
  const int64_t width = c.position_width();
  const bool decoder = c.architecture == Architecture::decoder_lm;
  Embeddings::Parts parts{.token = std::move(token)};
  if (c.embedding_dim > 0 && decoder)
    parts.token_projection = std::make_unique<Linear>(c.embedding_width(), width, false);
  if (c.token_types > 0) parts.type = std::make_unique<InputEmbedding>(c.token_types, width, false);
  parts.position = build(c.positions, position_setting(c), with_positions ? c.dropout : 0.0);
  if (c.embedding_norm) parts.norm = std::make_unique<LayerNorm>(width, norm_config(c));
  if (c.embedding_dim > 0 && !decoder) parts.projection = std::make_unique<Linear>(width, c.d_model);
  return std::make_unique<Embeddings>(std::move(parts), with_positions ? 0.0 : c.dropout);
}

std::unique_ptr<Embeddings> build_embeddings(const TransformerConfig& c) {
  return build_embeddings(std::make_unique<InputEmbedding>(c.vocab, c.embedding_width(), c.scale_embeddings), c);
}

std::unique_ptr<ProjectionLayer> build_projection(const Tensor& embedding, int64_t vocab, const TransformerConfig& c) {
  const ProjectionOptions options{.bias = c.projection_bias, .scale = c.logit_scale, .soft_cap = c.logit_soft_cap};
  return c.share_projection ? std::make_unique<ProjectionLayer>(embedding, options)
                            : std::make_unique<ProjectionLayer>(c.embedding_width(), vocab, options);
}

// Null unless `wanted`.
std::unique_ptr<HeadTransform> build_transform(bool wanted, int64_t out, const TransformerConfig& c) {
  if (!wanted) return nullptr;
  return std::make_unique<HeadTransform>(
      std::make_unique<Linear>(c.d_model, out, c.transform_bias, c.transform_activation),
      c.transform_norm ? std::make_unique<LayerNorm>(out, norm_config(c)) : nullptr);
}

// Whether this is the last weight of a sublayer, whose result is added to the residual stream: these additions grow
// with the number of layers (Radford et al. 2019, section 2.3).
bool ends_sublayer(const std::string& name) {
  return name.ends_with(".w_o.weight") || name.ends_with(".linear_2.weight");
}

// The layers of the stack that this parameter is in.
int64_t layers_of_stack(const std::string& name, const TransformerConfig& c) {
  const bool own = c.architecture == Architecture::encoder_decoder && name.starts_with("decoder.");
  return own ? c.of_decoder().layers : c.layers;
}

// Numbers the dropouts and initialises the parameters of a complete model.
void finish(Module& model, const TransformerConfig& c, uint64_t seed, const std::vector<Tensor>& tables) {
  number_dropouts(model);
  if (!execution().initialize_parameters) return;
  if (c.initialization == Initialization::xavier) {
    initialize_parameters(model, seed);
  } else {
    constexpr double kDeviation = 0.02;
    uint64_t stream = 0;
    for (const NamedParameter& p : named_parameters(model)) {
      const uint64_t own = stream++;
      if (p.tensor->rank() != 2) continue;
      const double factor = c.initialization == Initialization::normal_scaled && ends_sublayer(p.name)
                                ? 1 / std::sqrt(2.0 * static_cast<double>(layers_of_stack(p.name, c)))
                                : 1.0;
      initialize_normal(*p.tensor, kDeviation * factor, seed, own);
    }
  }
  if (c.embedding_initialization == EmbeddingInitialization::as_matrices) return;
  uint64_t stream = uint64_t{1} << 32;  // beyond those of the matrices
  // By the width of the table, whose root InputEmbedding multiplies with.
  for (const Tensor& table : tables)
    initialize_normal(table, 1 / std::sqrt(static_cast<double>(table.size(1))), seed, stream++);
}

}  // namespace

std::unique_ptr<Transformer> build_transformer(const TransformerConfig& config, uint64_t seed) {
  const TransformerConfig& c = validated(config, Architecture::encoder_decoder);
  auto source = std::make_unique<InputEmbedding>(c.source_vocab, c.d_model, c.scale_embeddings);
  auto target = c.share_embeddings ? std::make_unique<InputEmbedding>(source->weight(), c.scale_embeddings)
                                   : std::make_unique<InputEmbedding>(c.target_vocab, c.d_model, c.scale_embeddings);
  const Tensor source_table = source->weight(), target_table = target->weight();
  auto model = std::make_unique<Transformer>(
      c, Transformer::Parts{.source_embedding = build_embeddings(std::move(source), c),
                            .target_embedding = build_embeddings(std::move(target), c),
                            .encoder = build_encoder(&c.encoder_attention, c),
                            .decoder = build_decoder(&c.decoder_attention, &c.cross_attention, c.of_decoder()),
                            .projection = build_projection(target_table, c.target_vocab, c)});
  finish(*model, c, seed, {source_table, target_table});
  return model;
}

std::unique_ptr<DecoderLm> build_decoder_lm(const TransformerConfig& config, uint64_t seed) {
  const TransformerConfig& c = validated(config, Architecture::decoder_lm);
  auto embedding = build_embeddings(c);
  const Tensor table = embedding->weight();
  auto model = std::make_unique<DecoderLm>(
      c,
      DecoderLm::Parts{.embedding = std::move(embedding),
                       .decoder = build_decoder(nullptr, nullptr, c),
                       .state_projection =
                           c.embedding_dim > 0 ? std::make_unique<Linear>(c.d_model, c.embedding_dim, false) : nullptr,
                       .projection = build_projection(table, c.vocab, c)});
  finish(*model, c, seed, {table});
  return model;
}

std::unique_ptr<EncoderClassifier> build_encoder_classifier(const TransformerConfig& config, uint64_t seed) {
  const TransformerConfig& c = validated(config, Architecture::encoder_classifier);
  auto embedding = build_embeddings(c);
  const Tensor table = embedding->weight();
  auto model = std::make_unique<EncoderClassifier>(
      c, EncoderClassifier::Parts{.embedding = std::move(embedding),
                                  .encoder = build_encoder(nullptr, c),
                                  .pooler = build_transform(c.pooler, c.d_model, c),
                                  .head = std::make_unique<Linear>(c.d_model, static_cast<int64_t>(c.labels.size())),
                                  .dropout = std::make_unique<Dropout>(c.dropout)});
  finish(*model, c, seed, {table});
  return model;
}

std::unique_ptr<EncoderMaskedLm> build_encoder_masked_lm(const TransformerConfig& config, uint64_t seed) {
  const TransformerConfig& c = validated(config, Architecture::encoder_masked_lm);
  auto embedding = build_embeddings(c);
  const Tensor table = embedding->weight();
  auto model = std::make_unique<EncoderMaskedLm>(
      c, EncoderMaskedLm::Parts{.embedding = std::move(embedding),
                                .encoder = build_encoder(nullptr, c),
                                .transform = build_transform(c.prediction_transform, c.embedding_width(), c),
                                .projection = build_projection(table, c.vocab, c)});
  finish(*model, c, seed, {table});
  return model;
}

std::unique_ptr<EncoderModel> build_encoder_model(const TransformerConfig& config, uint64_t seed) {
  const TransformerConfig& c = validated(config, Architecture::encoder);
  auto embedding = build_embeddings(c);
  const Tensor table = embedding->weight();
  auto model = std::make_unique<EncoderModel>(
      c, EncoderModel::Parts{.embedding = std::move(embedding), .encoder = build_encoder(nullptr, c)});
  finish(*model, c, seed, {table});
  return model;
}

std::unique_ptr<Module> build_model(const TransformerConfig& config, uint64_t seed) {
  switch (config.architecture) {
    case Architecture::encoder_classifier:
      return build_encoder_classifier(config, seed);
    case Architecture::encoder_masked_lm:
      return build_encoder_masked_lm(config, seed);
    case Architecture::encoder:
      return build_encoder_model(config, seed);
    case Architecture::decoder_lm:
      return build_decoder_lm(config, seed);
    default:
      return build_transformer(config, seed);
  }
}

}  // namespace attune
