// LLaMA (Touvron et al. 2023; Dubey et al. 2024), and what differs from it by its configuration alone: Mistral (Jiang
// et al. 2023), Qwen2 (Yang et al. 2024) and Qwen3 (Yang et al. 2025), and with experts Mixtral (Jiang et al. 2024) and
// Qwen3-MoE.

#include <algorithm>

#include "attune/hub/describe.h"
#include "attune/hub/families.h"
#include "attune/hub/translate.h"

namespace attune {
namespace llama {

AttentionBias bias_of(const HubConfig& hub) {
  if (hub.text("model_type") == "qwen2") return AttentionBias::query_key_value;
  return hub.flag("attention_bias", false) ? AttentionBias::all : AttentionBias::none;
}

// Mistral has a sliding window unless it is null, Mixtral and Qwen3-MoE have one where config.json says so: in all
// layers.
bool has_window_everywhere(const HubConfig& hub, const std::string& type) {
  if (type == "mistral") return !hub.is_null("sliding_window");
  if (type == "mixtral") return hub.has("sliding_window");
  return type == "qwen3_moe" && hub.flag("use_sliding_window", false) && !hub.is_null("sliding_window");
}

// The layers of Qwen2 and Qwen3 with a sliding window: "layer_types", or those from "max_window_layers" on.
void set_windows(TransformerConfig& c, const HubConfig& hub) {
  if (!hub.flag("use_sliding_window", false) || hub.is_null("sliding_window")) return;
  set_layer_attention(c, hub, [&](int64_t layer) { return layer >= hub.integer("max_window_layers", 28); });
}

// A layer of Qwen3-MoE has experts unless "mlp_only_layers" has its number, or "decoder_sparse_step" leaves it out.
void set_dense_layers(Experts& experts, const HubConfig& hub, int64_t layers) {
  const std::vector<int64_t> dense = hub.integers("mlp_only_layers");
  const int64_t step = hub.integer("decoder_sparse_step", 1);
  if (step < 1) hub.refuse("decoder_sparse_step", "needs at least 1");
  for (int64_t i = 0; i < std::min(layers, kMostHubLayers); ++i)
    if ((i + 1) % step != 0 || std::ranges::find(dense, i) != dense.end()) experts.dense_layers.push_back(i);
}

FeedForwardKind llama_feed_forward(const HubConfig& hub, int64_t layers) {
  const std::string type = hub.text("model_type");
  if (type == "mixtral") return experts_of(hub, hub.integer("num_local_experts", 8));
  if (type != "qwen3_moe") return Dense{};
  // transformers 5 calls "num_local_experts" what was "num_experts".
  const int64_t number = hub.integer("num_experts", hub.integer("num_local_experts", 128));
  if (number == 0) return Dense{};
  Experts experts = experts_of(hub, number);
  experts.d_ff = hub.integer("moe_intermediate_size", 768);
  experts.normalised_weights = hub.flag("norm_topk_prob", false);
  set_dense_layers(experts, hub, layers);
  if (static_cast<int64_t>(experts.dense_layers.size()) == layers) return Dense{};
  return experts;
}

// How many heads the keys have where config.json does not say it.
int64_t default_key_heads(const std::string& type, int64_t heads) {
  if (type == "mistral" || type == "mixtral") return 8;
  if (type == "qwen2" || type == "qwen3") return 32;
  return type == "qwen3_moe" ? 4 : heads;
}

TransformerConfig translate(const HubFiles& files) {
  const HubConfig& hub = files.config;
  const std::string type = hub.text("model_type");
  TransformerConfig c = language_model(files, "lm_head");
  set_sizes(c, hub);
  c.norm_form = NormForm::rms;
  c.norm_epsilon = hub.number("rms_norm_eps", type == "mixtral" ? 1e-5 : 1e-6);
  MultiHead attention = {.kv_heads = key_heads_of(c, hub, default_key_heads(type, c.heads)), .bias = bias_of(hub)};
  attention.head_dim = type == "qwen3" ? hub.integer("head_dim", 128) : head_dim_of(c, hub);
  attention.head_norm = type == "qwen3" || type == "qwen3_moe";
  if (has_window_everywhere(hub, type)) attention.pattern = SlidingWindow{.size = hub.integer("sliding_window", 4096)};
  c.attention = attention;
  RotaryFields rotary{.head_dim = attention.head_dim, .base = type == "mixtral" ? 1e6 : 1e4};
  if (type == "llama") rotary.context_length = 2048;  // the first folders do not say it
  set_rotary(c, hub, rotary);
  if (type == "qwen2" || type == "qwen3") set_windows(c, hub);
  c.activation = activation_of(hub, "hidden_act", "silu", true);
  c.feed_forward_bias = hub.flag("mlp_bias", false);
  c.feed_forward = llama_feed_forward(hub, c.layers);
  return c;
}

// The fields that some of these models have.
void put_own_fields(Json& json, const TransformerConfig& c, const MultiHead& attention, std::string_view type) {
  const bool bias = attention.bias != AttentionBias::none;
  if (type == "llama") json.update({{"attention_bias", bias}, {"mlp_bias", c.feed_forward_bias}});
  if (type == "qwen3" || type == "qwen3_moe") json["attention_bias"] = bias;
  if (type == "mistral" || type == "mixtral") json["sliding_window"] = window_of(attention);
  if (!type.starts_with("qwen")) return;
  const bool by_layer = type != "qwen3_moe";
  const Json window = !by_layer                   ? window_of(attention)
                      : c.layer_attention.empty() ? Json(nullptr)
                                                  : Json(c.local_window);
  json.update({{"use_sliding_window", window.is_number()}, {"sliding_window", window}});
  if (by_layer) json["layer_types"] = layer_types_of(c);
}

void put_experts(Json& json, const Experts& experts, std::string_view type) {
  json["num_experts_per_tok"] = experts.experts_per_token;
  json["num_local_experts"] = experts.experts;
  if (type == "mixtral") {
    json["intermediate_size"] = experts.d_ff;
    return;
  }
  json.update({{"num_experts", experts.experts},
               {"moe_intermediate_size", experts.d_ff},
               {"norm_topk_prob", experts.normalised_weights},
               {"mlp_only_layers", experts.dense_layers},
               {"decoder_sparse_step", 1}});
}

Json describe(const DescribedModel& model) {
  const TransformerConfig& c = model.config;
  const MultiHead& attention = multi_head_of(c);
  const auto* const experts = std::get_if<Experts>(&c.feed_forward);
  if ((model.model_type == "mixtral" || model.model_type == "qwen3_moe") != (experts != nullptr))
    fail<ConfigError>("feed_forward = \"{}\": needs \"{}\"", variant_name(c.feed_forward),
                      experts ? "dense" : "experts");
  Json json = sizes_of(c);
  json.update({{"num_key_value_heads", attention.kv_heads},
               {"head_dim", attention.head_dim},
               {"hidden_act", activation_name(c.activation, true)},
               {"rms_norm_eps", c.norm_epsilon}});
  put_own_fields(json, c, attention, model.model_type);
  if (experts) put_experts(json, *experts, model.model_type);
  put_rotary(json, c, attention.head_dim);
  return json;
}

NameTable names(const TransformerConfig&, const HubFiles& files) {
  const std::string ours = "decoder.layers.*.", theirs = "model.layers.*.";
  NameTable table = files.config.text("model_type") == "mixtral"
                        ? expert_rows(ours + "feed_forward", theirs + "block_sparse_moe", {"w1", "w3"}, "w2")
                        : expert_rows(ours + "feed_forward", theirs + "mlp", {"gate_proj", "up_proj"}, "down_proj");
  const NameTable others = {
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
  table.insert(table.end(), others.begin(), others.end());
  return table;
}

}  // namespace llama

Family llama_family() {
  return {.model_types = {"llama", "mistral", "qwen2", "qwen3", "mixtral", "qwen3_moe"},
          .classes = {{"LlamaForCausalLM", Architecture::decoder_lm, "llama"},
                      {"MistralForCausalLM", Architecture::decoder_lm, "mistral"},
                      {"Qwen2ForCausalLM", Architecture::decoder_lm, "qwen2"},
                      {"Qwen3ForCausalLM", Architecture::decoder_lm, "qwen3"},
                      {"MixtralForCausalLM", Architecture::decoder_lm, "mixtral"},
                      {"Qwen3MoeForCausalLM", Architecture::decoder_lm, "qwen3_moe"},
                      {"LLaMAForCausalLM", Architecture::decoder_lm, ""},  // its name in the first published folders
                      {"LlamaModel", Architecture::decoder_lm, "", true},
                      {"MistralModel", Architecture::decoder_lm, "", true},
                      {"Qwen2Model", Architecture::decoder_lm, "", true},
                      {"Qwen3Model", Architecture::decoder_lm, "", true}},
          .prefix = "model.",
          .translate = llama::translate,
          .names = llama::names,
          .describe = llama::describe,
          .ignored = {"*.rotary_emb.inv_freq"},
          .untied = {"llama", "mistral", "qwen2", "qwen3", "mixtral", "qwen3_moe"}};
}

}  // namespace attune
