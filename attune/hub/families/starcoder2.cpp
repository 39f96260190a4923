// StarCoder2: Lozhkov et al. 2024.

#include "attune/hub/describe.h"
#include "attune/hub/families.h"
#include "attune/hub/translate.h"

namespace attune {
namespace starcoder2 {

TransformerConfig translate(const HubFiles& files) {
  const HubConfig& hub = files.config;
  TransformerConfig c = language_model(files, "lm_head");
  set_sizes(c, hub);
  c.norm_epsilon = hub.number("norm_epsilon", 1e-5);
  const bool bias = hub.flag("use_bias", true);
  MultiHead attention = {.kv_heads = hub.integer("num_key_value_heads", 2),
                         .head_dim = head_dim_of(c, hub),
                         .bias = bias ? AttentionBias::all : AttentionBias::none};
  if (hub.has("sliding_window")) attention.pattern = SlidingWindow{.size = hub.integer("sliding_window")};
  c.attention = attention;
  set_rotary(c, hub, {.head_dim = attention.head_dim});
  c.activation = activation_of(hub, "hidden_act", "gelu_pytorch_tanh");
  c.feed_forward_bias = bias;
  return c;
}

Json describe(const DescribedModel& model) {
  const TransformerConfig& c = model.config;
  const MultiHead& attention = multi_head_of(c);
  Json json = sizes_of(c);
  json.update({{"num_key_value_heads", attention.kv_heads},
               {"head_dim", attention.head_dim},
               {"sliding_window", window_of(attention)},
               {"use_bias", attention.bias != AttentionBias::none || c.feed_forward_bias},
               {"hidden_act", activation_name(c.activation)},
               {"norm_epsilon", c.norm_epsilon}});
  put_rotary(json, c, attention.head_dim);
  return json;
}

NameTable names(const TransformerConfig&, const HubFiles&) {
  const std::string ours = "decoder.layers.*.", theirs = "model.layers.*.";
  return {
      {"embedding", {"model.embed_tokens"}},
      {ours + "residual_1.norm", {theirs + "input_layernorm"}},
      {ours + "self_attention.w_q", {theirs + "self_attn.q_proj"}},
      {ours + "self_attention.w_k", {theirs + "self_attn.k_proj"}},
      {ours + "self_attention.w_v", {theirs + "self_attn.v_proj"}},
      {ours + "self_attention.w_o", {theirs + "self_attn.o_proj"}},
      {ours + "residual_3.norm", {theirs + "post_attention_layernorm"}},
      {ours + "feed_forward.linear_1", {theirs + "mlp.c_fc"}},
      {ours + "feed_forward.linear_2", {theirs + "mlp.c_proj"}},
      {"decoder.norm", {"model.norm"}},
      {"projection", {"lm_head"}},
  };
}

}  // namespace starcoder2

Family starcoder2_family() {
  return {.model_types = {"starcoder2"},
          .classes = {{"Starcoder2ForCausalLM", Architecture::decoder_lm, "starcoder2"}},
          .prefix = "model.",
          .translate = starcoder2::translate,
          .names = starcoder2::names,
          .describe = starcoder2::describe,
          .ignored = {"*.rotary_emb.inv_freq"}};
}

}  // namespace attune
