// LLaMA (Touvron et al. 2023; Dubey et al. 2024), and what differs from it by its configuration alone: Mistral (Jiang
// et al. 2023), Qwen2 (Yang et al. 2024) and Qwen3 (Yang et al. 2025).

#include "attune/hub/families.h"
#include "attune/hub/translate.h"

namespace attune {
namespace {

AttentionBias bias_of(const HubConfig& hub) {
  if (hub.text("model_type") == "qwen2") return AttentionBias::query_key_value;
  return hub.flag("attention_bias", false) ? AttentionBias::all : AttentionBias::none;
}

// The layers of Qwen2 and Qwen3 with a sliding window: "layer_types", or those from "max_window_layers" on.
void set_windows(TransformerConfig& c, const HubConfig& hub) {
  if (!hub.flag("use_sliding_window", false) || hub.is_null("sliding_window")) return;
  set_layer_attention(c, hub, [&](int64_t layer) { return layer >= hub.integer("max_window_layers", 28); });
}

TransformerConfig translate(const HubFiles& files) {
  const HubConfig& hub = files.config;
  const std::string type = hub.text("model_type");
  TransformerConfig c = language_model(files, "lm_head");
  set_sizes(c, hub);
  c.norm_form = NormForm::rms;
  c.norm_epsilon = hub.number("rms_norm_eps", 1e-6);
  MultiHead attention = {.kv_heads = hub.integer("num_key_value_heads", c.heads), .bias = bias_of(hub)};
  attention.head_dim = head_dim_of(c, hub);
  attention.head_norm = type == "qwen3";
  if (type == "mistral" && !hub.is_null("sliding_window"))
    attention.pattern = SlidingWindow{.size = hub.integer("sliding_window", 4096)};
  c.attention = attention;
  set_rotary(c, hub, {.head_dim = attention.head_dim});
  if (type.starts_with("qwen")) set_windows(c, hub);
  c.activation = activation_of(hub, "hidden_act", "silu", true);
  c.feed_forward_bias = hub.flag("mlp_bias", false);
  return c;
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
      {ours + "self_attention.query_norm", {theirs + "self_attn.q_norm"}},
      {ours + "self_attention.key_norm", {theirs + "self_attn.k_norm"}},
      {ours + "residual_3.norm", {theirs + "post_attention_layernorm"}},
      {ours + "feed_forward.linear_1", {theirs + "mlp.gate_proj", theirs + "mlp.up_proj"}},
      {ours + "feed_forward.linear_2", {theirs + "mlp.down_proj"}},
      {"decoder.norm", {"model.norm"}},
      {"projection", {"lm_head"}},
  };
}

}  // namespace

Family llama_family() {
  return {.model_types = {"llama", "mistral", "qwen2", "qwen3"},
          .classes = {{"LlamaForCausalLM", Architecture::decoder_lm},
                      {"MistralForCausalLM", Architecture::decoder_lm},
                      {"Qwen2ForCausalLM", Architecture::decoder_lm},
                      {"Qwen3ForCausalLM", Architecture::decoder_lm}},
          .prefix = "model.",
          .translate = translate,
          .names = names,
          .ignored = {"*.rotary_emb.inv_freq"}};
}

}  // namespace attune
