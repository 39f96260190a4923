// GPT-NeoX (Black et al. 2022) and Pythia (Biderman et al. 2023).

#include "attune/hub/describe.h"
#include "attune/hub/families.h"
#include "attune/hub/translate.h"

namespace attune {
namespace gpt_neox {

TransformerConfig translate(const HubFiles& files) {
  const HubConfig& hub = files.config;
  TransformerConfig c = language_model(files, "embed_out");
  set_sizes(c, hub);
  c.attention = MultiHead{.bias = hub.flag("attention_bias", true) ? AttentionBias::all : AttentionBias::none};
  set_rotary(c, hub,
             {.head_dim = head_dim_of(c, hub),
              .base_field = "rotary_emb_base",
              .partial = true,
              .partial_factor = 0.25,
              .partial_field = "rotary_pct"});
  c.activation = activation_of(hub, "hidden_act", "gelu");
  c.norm_epsilon = hub.number("layer_norm_eps", 1e-5);
  c.parallel_residual = hub.flag("use_parallel_residual", true);
  return c;
}

Json describe(const DescribedModel& model) {
  const TransformerConfig& c = model.config;
  const MultiHead& attention = multi_head_of(c);
  Json json = sizes_of(c);
  put_rotary(json, c, attention.head_dim);
  json.update({{"rotary_pct", json["rope_parameters"].value("partial_rotary_factor", 1.0)},
               {"rotary_emb_base", json["rope_theta"]},
               {"attention_bias", attention.bias != AttentionBias::none},
               {"hidden_act", activation_name(c.activation)},
               {"layer_norm_eps", c.norm_epsilon},
               {"use_parallel_residual", c.parallel_residual}});
  json["rope_parameters"]["partial_rotary_factor"] = json["rotary_pct"];
  return json;
}

// One matrix has, for each head, the rows of its queries, its keys and its values.
NameTable names(const TransformerConfig& c, const HubFiles&) {
  const std::string ours = "decoder.layers.*.", theirs = "gpt_neox.layers.*.";
  const std::vector<std::string> qkv = {theirs + "attention.query_key_value"};
  const auto part = [width = c.head_dim()](int64_t i) {
    return Transform{.part = true, .first = i * width, .run = width, .period = 3 * width};
  };
  return {
      {"embedding", {"gpt_neox.embed_in"}},
      {ours + "residual_1.norm", {theirs + "input_layernorm"}},
      {ours + "self_attention.w_q", qkv, part(0)},
      {ours + "self_attention.w_k", qkv, part(1)},
      {ours + "self_attention.w_v", qkv, part(2)},
      {ours + "self_attention.w_o", {theirs + "attention.dense"}},
      {ours + "residual_3.norm", {theirs + "post_attention_layernorm"}},
      {ours + "feed_forward.linear_1", {theirs + "mlp.dense_h_to_4h"}},
      {ours + "feed_forward.linear_2", {theirs + "mlp.dense_4h_to_h"}},
      {"decoder.norm", {"gpt_neox.final_layer_norm"}},
      {"projection", {"embed_out"}},
  };
}

}  // namespace gpt_neox

Family gpt_neox_family() {
  return {.model_types = {"gpt_neox"},
          .classes = {{"GPTNeoXForCausalLM", Architecture::decoder_lm, "gpt_neox"}},
          .prefix = "gpt_neox.",
          .translate = gpt_neox::translate,
          .names = gpt_neox::names,
          .describe = gpt_neox::describe,
          .ignored = {"*.attention.bias", "*.attention.masked_bias", "*.rotary_emb.inv_freq"},  // causal masks
          .untied = {"gpt_neox"}};
}

}  // namespace attune
