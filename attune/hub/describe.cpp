#include "attune/hub/describe.h"

#include <algorithm>
#include <cmath>
#include <variant>

#include "attune/base/fail.h"

namespace attune {
namespace {

// The share of a head that is rotated, so that its product with head_dim has `dimensions` as whole part.
double share_of(int64_t dimensions, int64_t head_dim) {
  const auto wanted = static_cast<double>(dimensions), all = static_cast<double>(head_dim);
  const double share = wanted / all;
  return share * all < wanted ? std::nextafter(share, 1) : share;
}

const char* scaling_name(RotaryScaling scaling) {
  switch (scaling) {
    case RotaryScaling::linear:
      return "linear";
    case RotaryScaling::llama3:
      return "llama3";
    case RotaryScaling::yarn:
      return "yarn";
    case RotaryScaling::longrope:
      return "longrope";
    default:
      return "default";
  }
}

void put_scaling(Json& json, const RotaryOptions& rotary) {
  json["rope_type"] = scaling_name(rotary.scaling);
  if (rotary.scaling == RotaryScaling::none) return;
  json["factor"] = rotary.factor;
  if (rotary.scaling == RotaryScaling::linear) return;
  json["original_max_position_embeddings"] = rotary.original_length;
  if (rotary.magnitude > 0) json["attention_factor"] = rotary.magnitude;
  if (rotary.scaling == RotaryScaling::llama3) {
    json["low_freq_factor"] = rotary.beta_slow;
    json["high_freq_factor"] = rotary.beta_fast;
  } else if (rotary.scaling == RotaryScaling::yarn) {
    json["beta_fast"] = rotary.beta_fast;
    json["beta_slow"] = rotary.beta_slow;
    json["truncate"] = rotary.ramp != RotaryRamp::exact_pairs;
  } else {
    json["short_factor"] = json["long_factor"] = rotary.pair_factors;  // no text is longer than the trained length
  }
}

}  // namespace

const MultiHead& multi_head_of(const TransformerConfig& c) {
  const bool two_stacks = c.architecture == Architecture::encoder_decoder;
  const auto* const kind = std::get_if<MultiHead>(two_stacks ? &c.encoder_attention : &c.attention);
  if (kind == nullptr)
    fail<ConfigError>("{} = \"latent\": needs \"multi_head\"", two_stacks ? "encoder_attention" : "attention");
  return *kind;
}

Json sizes_of(const TransformerConfig& c) {
  return {{"hidden_size", c.d_model},
          {"num_attention_heads", c.heads},
          {"num_hidden_layers", c.layers},
          {"intermediate_size", c.d_ff}};
}

Json layer_types_of(const TransformerConfig& c) {
  Json types = Json::array();
  for (size_t i = 0; i < static_cast<size_t>(c.layers); ++i) {
    const bool local = i < c.layer_attention.size() && c.layer_attention[i] == LayerAttention::local;
    types.push_back(local ? "sliding_attention" : "full_attention");
  }
  return types;
}

Json window_of(const MultiHead& attention) {
  const auto* const window = std::get_if<SlidingWindow>(&attention.pattern);
  return window ? Json(window->size) : Json(nullptr);
}

int64_t learned_positions_of(const TransformerConfig& c) {
  const auto* const learned = std::get_if<LearnedPositions>(&c.positions);
  if (learned == nullptr) fail<ConfigError>("positions = \"{}\": needs \"learned\"", variant_name(c.positions));
  return learned->max_length;
}

Json rope_parameters_of(const PositionKind& positions, int64_t head_dim) {
  const auto* const rotary = std::get_if<RotaryOptions>(&positions);
  if (rotary == nullptr) fail<ConfigError>("positions = \"{}\": needs \"rotary\"", variant_name(positions));
  Json json = {{"rope_theta", rotary->base}};
  if (rotary->dimensions > 0) json["partial_rotary_factor"] = share_of(rotary->dimensions, head_dim);
  put_scaling(json, *rotary);
  return json;
}

void put_rotary(Json& json, const TransformerConfig& c, int64_t head_dim) {
  json["rope_parameters"] = rope_parameters_of(c.positions, head_dim);
  json["rope_theta"] = json["rope_parameters"]["rope_theta"];
  json["max_position_embeddings"] = c.context_length;
}

Json bert_fields(const TransformerConfig& c) {
  Json json = sizes_of(c);
  json.update({{"hidden_act", activation_name(c.activation)},
               {"layer_norm_eps", c.norm_epsilon},
               {"type_vocab_size", std::max<int64_t>(c.token_types, 1)},
               {"max_position_embeddings", learned_positions_of(c)}});
  return json;
}

Json bart_fields(const TransformerConfig& c) {
  multi_head_of(c);
  if (c.share_embeddings && !c.share_projection)
    fail<ConfigError>("share_projection = false: needs true where share_embeddings is");
  const TransformerConfig decoder = c.of_decoder();
  return {{"d_model", c.d_model},
          {"encoder_attention_heads", c.heads},
          {"encoder_layers", c.layers},
          {"encoder_ffn_dim", c.d_ff},
          {"decoder_attention_heads", decoder.heads},
          {"decoder_layers", decoder.layers},
          {"decoder_ffn_dim", decoder.d_ff},
          {"num_hidden_layers", c.layers},
          {"activation_function", activation_name(c.activation)},
          {"scale_embedding", c.scale_embeddings}};
}

}  // namespace attune
