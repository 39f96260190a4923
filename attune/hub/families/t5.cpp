// T5: Raffel et al. 2020, version 1.1 with gated units too; mT5: Xue et al. 2021.

#include <fmt/format.h>
#include <cmath>

#include "attune/hub/describe.h"
#include "attune/hub/families.h"
#include "attune/hub/families/encoder_decoder.h"
#include "attune/hub/translate.h"

namespace attune {
namespace t5 {

// "relu", or "gated-" and the activation of the gate, where "gelu" is its tanh form. The fields that transformers makes
// of this go first where config.json has them.
FeedForwardActivation feed_forward_of(const HubConfig& hub) {
  const std::string gated = "gated-", field = hub.has("dense_act_fn") ? "dense_act_fn" : "feed_forward_proj";
  std::string name = hub.text("feed_forward_proj", hub.text("model_type") == "t5" ? "relu" : "gated-gelu");
  const bool is_gated = name.starts_with(gated);
  if (is_gated) name = name.substr(gated.size());
  if (is_gated && name == "gelu") name = "gelu_new";
  return activation_of(HubConfig(Json{{field, hub.text("dense_act_fn", name)}}, hub.where()), field, "",
                       hub.flag("is_gated_act", is_gated));
}

// Only the first version scales the states, which transformers 5 writes into config.json; before, an untied projection
// meant a later version.
double logit_scale_of(const HubConfig& hub, int64_t d_model) {
  const bool scaled = hub.flag("scale_decoder_outputs", hub.flag("tie_word_embeddings", true));
  return hub.text("model_type") == "t5" && scaled ? 1 / std::sqrt(static_cast<double>(d_model)) : 1;
}

RelativeBiasPositions positions_of(const HubConfig& hub) {
  const std::string distance = "relative_attention_max_distance", buckets = "relative_attention_num_buckets";
  RelativeBiasPositions positions{.buckets = hub.integer(buckets, 32), .max_distance = hub.integer(distance, 128)};
  if (positions.max_distance <= positions.buckets / 2)
    hub.refuse(hub.has(distance) ? distance : buckets, fmt::format("{} has to be above half of {}", distance, buckets));
  return positions;
}

TransformerConfig translate(const HubFiles& files) {
  const HubConfig& hub = files.config;
  refuse_is_causal(hub);
  TransformerConfig c = without_dropout(Architecture::encoder_decoder);
  c.source_vocab = c.target_vocab = hub.integer("vocab_size");
  c.d_model = hub.integer("d_model");
  c.heads = hub.integer("num_heads");
  c.layers = hub.integer("num_layers");
  c.decoder_layers = hub.integer("num_decoder_layers", c.layers);
  c.d_ff = hub.integer("d_ff");
  c.encoder_attention = c.decoder_attention = c.cross_attention =
      MultiHead{.head_dim = hub.integer("d_kv"), .bias = AttentionBias::none, .scale = 1};
  c.positions = positions_of(hub);
  c.norm_form = NormForm::rms;
  c.norm_epsilon = hub.number("layer_norm_epsilon", 1e-6);
  c.activation = feed_forward_of(hub);
  c.feed_forward_bias = c.projection_bias = false;
  c.share_embeddings = true;
  c.share_projection = !files.tensors.contains("lm_head.weight");
  c.logit_scale = logit_scale_of(hub, c.d_model);
  return c;
}

// The other direction of feed_forward_of().
Json feed_forward_name(FeedForwardActivation activation) {
  if (activation == FeedForwardActivation::geglu_tanh) return "gated-gelu";
  const bool gated = gate_of(activation).has_value();
  const Json name = activation_name(activation, gated);
  return gated && name.is_string() ? Json("gated-" + name.get<std::string>()) : name;
}

Json describe(const DescribedModel& model) {
  const TransformerConfig& c = model.config;
  const MultiHead& attention = multi_head_of(c);
  const auto* const bias = std::get_if<RelativeBiasPositions>(&c.positions);
  if (bias == nullptr) fail<ConfigError>("positions = \"{}\": needs \"relative_bias\"", variant_name(c.positions));
  return {{"d_model", c.d_model},
          {"num_heads", c.heads},
          {"num_layers", c.layers},
          {"num_decoder_layers", c.of_decoder().layers},
          {"d_ff", c.d_ff},
          {"d_kv", attention.head_dim},
          {"relative_attention_num_buckets", bias->buckets},
          {"relative_attention_max_distance", bias->max_distance},
          {"layer_norm_epsilon", c.norm_epsilon},
          {"feed_forward_proj", feed_forward_name(c.activation)},
          {"scale_decoder_outputs", c.logit_scale != 1}};
}

NameTable names(const TransformerConfig& c, const HubFiles& files) {
  const bool gated = gate_of(c.activation).has_value();
  NameTable table = {
      {"source_embedding.weight",
       {first_stored(files, {"shared.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight"})}},
      {"projection", {"lm_head"}},
  };
  const std::array projections = {"q", "k", "v", "o"};
  for (const std::string stack : {"encoder", "decoder"}) {
    const std::string ours = stack + ".layers.*.", theirs = stack + ".block.*.layer.";
    const std::string last = stack == "encoder" ? "1" : "2", feed_forward = theirs + last + ".DenseReluDense.";
    add_attention(table, ours + "self_attention", theirs + "0.SelfAttention", projections);
    table.push_back({ours + "residual_1.norm", {theirs + "0.layer_norm"}});
    if (stack == "decoder") {
      add_attention(table, ours + "cross_attention", theirs + "1.EncDecAttention", projections);
      table.push_back({ours + "residual_2.norm", {theirs + "1.layer_norm"}});
    }
    table.push_back({ours + "feed_forward.linear_1", gated ? std::vector{feed_forward + "wi_0", feed_forward + "wi_1"}
                                                           : std::vector{feed_forward + "wi"}});
    table.push_back({ours + "feed_forward.linear_2", {feed_forward + "wo"}});
    table.push_back(
        {ours + (stack == "encoder" ? "residual_2.norm" : "residual_3.norm"), {theirs + last + ".layer_norm"}});
    table.push_back({stack + ".norm", {stack + ".final_layer_norm"}});
    // The layers of a stack share the table of its first one.
    table.push_back({stack + ".relative_bias", {stack + ".block.0.layer.0.SelfAttention.relative_attention_bias"}});
  }
  return table;
}

}  // namespace t5

Family t5_family() {
  return {
      .model_types = {"t5", "mt5"},
      .classes = {{"T5ForConditionalGeneration", Architecture::encoder_decoder, "t5"},
                  {"T5WithLMHeadModel", Architecture::encoder_decoder, ""},  // its name until 2020
                  {"MT5ForConditionalGeneration", Architecture::encoder_decoder, "mt5"},
                  {"T5Model", Architecture::encoder_decoder, "", true},
                  {"MT5Model", Architecture::encoder_decoder, "", true}},
      .prefix = "",
      .translate = t5::translate,
      .names = t5::names,
      .describe = t5::describe,
      // The shared table under its other names, and a table of cross-attention that the first files have for nothing.
      .ignored = {"*coder.embed_tokens.weight", "shared.weight",
                  "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"},
      .untied = {"mt5"}};
}

}  // namespace attune
