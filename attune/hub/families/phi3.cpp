// Phi-3: Abdin et al. 2024. One matrix computes queries, keys and values, and one both halves of the gated unit.

#include "attune/hub/describe.h"
#include "attune/hub/families.h"
#include "attune/hub/translate.h"

namespace attune {
namespace phi3 {

TransformerConfig translate(const HubFiles& files) {
  const HubConfig& hub = files.config;
  TransformerConfig c = language_model(files, "lm_head");
  set_sizes(c, hub);
  c.norm_form = NormForm::rms;
  c.norm_epsilon = hub.number("rms_norm_eps", 1e-5);
  MultiHead attention = {.kv_heads = key_heads_of(c, hub, c.heads),
                         .head_dim = head_dim_of(c, hub),
                         .bias = hub.flag("attention_bias", false) ? AttentionBias::all : AttentionBias::none};
  if (hub.has("sliding_window")) attention.pattern = SlidingWindow{.size = hub.integer("sliding_window")};
  c.attention = attention;
  set_rotary(c, hub, {.head_dim = attention.head_dim, .original_length = 4096, .partial = true});
  c.activation = activation_of(hub, "hidden_act", "silu", true);
  c.feed_forward_bias = false;
  return c;
}

Json describe(const DescribedModel& model) {
  const TransformerConfig& c = model.config;
  const MultiHead& attention = multi_head_of(c);
  Json json = sizes_of(c);
  json.update({{"num_key_value_heads", attention.kv_heads},
               {"head_dim", attention.head_dim},
               {"sliding_window", window_of(attention)},
               {"hidden_act", activation_name(c.activation, true)},
               {"rms_norm_eps", c.norm_epsilon}});
  put_rotary(json, c, attention.head_dim);
  json["original_max_position_embeddings"] = c.context_length;
  return json;
}

NameTable names(const TransformerConfig& c, const HubFiles&) {
  const std::string ours = "decoder.layers.*.", theirs = "model.layers.*.";
  const std::vector<std::string> qkv = {theirs + "self_attn.qkv_proj"};
  const int64_t queries = c.heads * c.head_dim();
  const int64_t keys = std::get<MultiHead>(c.attention).key_heads(c.heads) * c.head_dim();
  return {
      {"embedding", {"model.embed_tokens"}},
      {ours + "residual_1.norm", {theirs + "input_layernorm"}},
      {ours + "self_attention.w_q", qkv, part_of_rows(0)},
      {ours + "self_attention.w_k", qkv, part_of_rows(queries)},
      {ours + "self_attention.w_v", qkv, part_of_rows(queries + keys)},
      {ours + "self_attention.w_o", {theirs + "self_attn.o_proj"}},
      {ours + "residual_3.norm", {theirs + "post_attention_layernorm"}},
      {ours + "feed_forward.linear_1", {theirs + "mlp.gate_up_proj"}},
      {ours + "feed_forward.linear_2", {theirs + "mlp.down_proj"}},
      {"decoder.norm", {"model.norm"}},
      {"projection", {"lm_head"}},
  };
}

}  // namespace phi3

Family phi3_family() {
  return {.model_types = {"phi3"},
          .classes = {{"Phi3ForCausalLM", Architecture::decoder_lm, "phi3"}},
          .prefix = "model.",
          .translate = phi3::translate,
          .names = phi3::names,
          .describe = phi3::describe,
          .ignored = {"*.rotary_emb.inv_freq"},
          .untied = {"phi3"}};
}

}  // namespace attune
