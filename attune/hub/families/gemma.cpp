// Gemma 2 (Gemma Team 2024) and the text models of Gemma 3 (Gemma Team 2025).

#include <algorithm>
#include <cmath>

#include "attune/hub/describe.h"
#include "attune/hub/families.h"
#include "attune/hub/translate.h"

namespace attune {
namespace gemma {

constexpr const char* kGlobal = "full_attention";
constexpr const char* kLocal = "sliding_attention";

// "rope_scaling" and "rope_theta" of transformers 4 are for global layers alone.
void set_gemma3_positions(TransformerConfig& c, const HubConfig& hub, int64_t head_dim) {
  set_rotary(c, hub, {.head_dim = head_dim, .layer_type = kGlobal, .base = 1e6});
  set_layer_attention(c, hub, [&, every = hub.integer("sliding_window_pattern", 6)](int64_t layer) {
    return every < 1 || (layer + 1) % every != 0;
  });
  Json local = hub.json();
  local.erase("rope_scaling");
  c.local_positions = rotary_of({local, hub.where()},
                                {.head_dim = head_dim, .layer_type = kLocal, .base_field = "rope_local_base_freq"});
  limit_context(c);
}

// Null: no cap.
double cap_of(const HubConfig& hub, std::string_view field, double fallback) {
  return hub.is_null(field) ? 0 : hub.number(field, fallback);
}

// Scores are capped in Gemma 2 alone: transformers has the field for Gemma 3 too and does not apply it.
TransformerConfig translate(const HubFiles& files) {
  const HubConfig& hub = files.config;
  const bool gemma3 = hub.text("model_type") == "gemma3_text";
  hub.require("use_bidirectional_attention", false);
  TransformerConfig c = language_model(files, "lm_head");
  set_sizes(c, hub);
  c.scale_embeddings = true;
  c.norm = NormPlacement::sandwich;
  c.norm_form = NormForm::rms;
  c.norm_epsilon = hub.number("rms_norm_eps", 1e-6);
  const int64_t head_dim = hub.integer("head_dim", 256);
  const double of_scale = hub.number("query_pre_attn_scalar", 256);
  if (!(of_scale > 0)) hub.refuse("query_pre_attn_scalar", "needs a number above 0");
  c.attention = MultiHead{.kv_heads = key_heads_of(c, hub, 4),
                          .head_dim = head_dim,
                          .bias = hub.flag("attention_bias", false) ? AttentionBias::all : AttentionBias::none,
                          .head_norm = gemma3,
                          .soft_cap = gemma3 ? 0 : cap_of(hub, "attn_logit_softcapping", 50),
                          .scale = 1 / std::sqrt(of_scale)};
  c.logit_soft_cap = cap_of(hub, "final_logit_softcapping", gemma3 ? 0 : 30);
  if (gemma3) {
    set_gemma3_positions(c, hub, head_dim);
  } else {
    set_rotary(c, hub, {.head_dim = head_dim});
    set_layer_attention(c, hub, [](int64_t layer) { return layer % 2 == 0; });
  }
  c.activation = activation_of(hub, "hidden_activation", "gelu_pytorch_tanh", true);
  c.feed_forward_bias = false;
  return c;
}

Json describe(const DescribedModel& model) {
  const TransformerConfig& c = model.config;
  const MultiHead& attention = multi_head_of(c);
  const bool gemma3 = model.model_type == "gemma3_text";
  const double scale = attention.scale > 0 ? attention.scale : 1 / std::sqrt(static_cast<double>(attention.head_dim));
  const auto cap = [](double value) { return value > 0 ? Json(value) : Json(nullptr); };
  Json json = sizes_of(c);
  json.update({{"num_key_value_heads", attention.kv_heads},
               {"head_dim", attention.head_dim},
               {"attention_bias", attention.bias != AttentionBias::none},
               {"query_pre_attn_scalar", std::llround(1 / (scale * scale))},  // transformers takes an integer
               {"final_logit_softcapping", cap(c.logit_soft_cap)},
               {"hidden_activation", activation_name(c.activation, true)},
               {"rms_norm_eps", c.norm_epsilon},
               {"layer_types", layer_types_of(c)},
               {"sliding_window", std::max<int64_t>(c.local_window, 1)}});
  put_rotary(json, c, attention.head_dim);
  if (gemma3) {
    const PositionKind& local = c.layer_attention.empty() ? c.positions : c.local_positions;
    json["rope_parameters"] = {{kGlobal, rope_parameters_of(c.positions, attention.head_dim)},
                               {kLocal, rope_parameters_of(local, attention.head_dim)}};
  } else {
    json["attn_logit_softcapping"] = cap(attention.soft_cap);
  }
  return json;
}

// The weights of norms are stored without the 1 that is added to them.
NameTable names(const TransformerConfig&, const HubFiles&) {
  const std::string ours = "decoder.layers.*.", theirs = "model.layers.*.";
  const Transform norm = {.add = 1};
  return {
      {"embedding", {"model.embed_tokens"}},
      {ours + "residual_1.norm", {theirs + "input_layernorm"}, norm},
      {ours + "residual_1.output_norm", {theirs + "post_attention_layernorm"}, norm},
      {ours + "self_attention.w_q", {theirs + "self_attn.q_proj"}},
      {ours + "self_attention.w_k", {theirs + "self_attn.k_proj"}},
      {ours + "self_attention.w_v", {theirs + "self_attn.v_proj"}},
      {ours + "self_attention.w_o", {theirs + "self_attn.o_proj"}},
      {ours + "self_attention.query_norm", {theirs + "self_attn.q_norm"}, norm},
      {ours + "self_attention.key_norm", {theirs + "self_attn.k_norm"}, norm},
      {ours + "residual_3.norm", {theirs + "pre_feedforward_layernorm"}, norm},
      {ours + "residual_3.output_norm", {theirs + "post_feedforward_layernorm"}, norm},
      {ours + "feed_forward.linear_1", {theirs + "mlp.gate_proj", theirs + "mlp.up_proj"}},
      {ours + "feed_forward.linear_2", {theirs + "mlp.down_proj"}},
      {"decoder.norm", {"model.norm"}, norm},
      {"projection", {"lm_head"}},
  };
}

}  // namespace gemma

Family gemma_family() {
  return {.model_types = {"gemma2", "gemma3_text"},
          .classes = {{"Gemma2ForCausalLM", Architecture::decoder_lm, "gemma2"},
                      {"Gemma3ForCausalLM", Architecture::decoder_lm, "gemma3_text"},
                      {"Gemma2Model", Architecture::decoder_lm, "", true},
                      {"Gemma3TextModel", Architecture::decoder_lm, "", true}},
          .prefix = "model.",
          .translate = gemma::translate,
          .names = gemma::names,
          .describe = gemma::describe,
          .ignored = {"*.rotary_emb.inv_freq"}};
}

}  // namespace attune
