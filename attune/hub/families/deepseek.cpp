// DeepSeek-V2 and V3 (DeepSeek-AI 2024): multi-head latent attention and mixtures of experts.

#include <algorithm>
#include <cmath>

#include "attune/hub/describe.h"
#include "attune/hub/families.h"
#include "attune/hub/translate.h"

namespace attune {
namespace deepseek {

// Every layer but the first ones has experts. As in transformers, V2 does not look at norm_topk_prob.
FeedForwardKind deepseek_feed_forward(const HubConfig& hub, int64_t layers) {
  const bool v2 = hub.text("model_type") == "deepseek_v2";
  const int64_t dense = hub.integer("first_k_dense_replace", v2 ? 0 : 3);
  if (dense >= layers || layers > kMostHubLayers) return Dense{};
  hub.require("moe_layer_freq", 1);
  hub.require("scoring_func", v2 ? "softmax" : "sigmoid");
  if (hub.flag("mlp_bias", false)) hub.refuse("mlp_bias", "is not supported with experts");
  Experts c = experts_of(hub, hub.integer("n_routed_experts", v2 ? 64 : 256));
  c.shared_experts = hub.integer("n_shared_experts", v2 ? 2 : 1);
  c.d_ff = hub.integer("moe_intermediate_size", v2 ? 1407 : 2048);
  c.weight_scale = hub.number("routed_scaling_factor", v2 ? 1 : 2.5);
  for (int64_t i = 0; i < dense; ++i) c.dense_layers.push_back(i);
  if (v2) {
    const std::string method = hub.text("topk_method", "greedy");
    if (method != "greedy" && method != "group_limited_greedy") hub.refuse("topk_method", "is not supported");
    c.normalised_weights = false;
    if (method == "greedy") return c;
    c.groups = hub.integer("n_group");
    c.top_groups = hub.integer("topk_group");
  } else {
    hub.require("topk_method", "noaux_tc");
    c.scores = ExpertScores::sigmoid;
    c.choice_bias = true;
    c.normalised_weights = hub.flag("norm_topk_prob", !hub.is_null("norm_topk_prob"));
    c.group_score = GroupScore::sum_of_two;
    c.groups = hub.integer("n_group", 8);
    c.top_groups = hub.integer("topk_group", 4);
  }
  return c;
}

// YaRN's second correction: the scores are multiplied with the square of 0.1 * mscale_all_dim * ln(factor) + 1.
double scale_of(const HubConfig& hub, int64_t width, const RotaryOptions& rotary) {
  const HubConfig table = rotary_table_of(hub);
  double correction = 1;
  if (rotary.scaling != RotaryScaling::none && rotary.factor > 1)
    correction = 0.1 * table.number("mscale_all_dim", 0) * std::log(rotary.factor) + 1;
  return correction * correction / std::sqrt(static_cast<double>(width));
}

TransformerConfig translate(const HubFiles& files) {
  const HubConfig& hub = files.config;
  TransformerConfig c = language_model(files, "lm_head");
  set_sizes(c, hub);
  hub.require("num_key_value_heads", c.heads);
  const int64_t plain = hub.integer("qk_nope_head_dim"), rotary_dim = hub.integer("qk_rope_head_dim");
  set_rotary(c, hub, {.head_dim = rotary_dim});
  auto& rotary = std::get<RotaryOptions>(c.positions);
  const bool interleaved =
      hub.text("model_type") == "deepseek_v2" || hub.flag("rope_interleave", !hub.is_null("rope_interleave"));
  rotary.pairing = interleaved ? RotaryPairing::interleaved : RotaryPairing::half;
  c.attention = MultiHeadLatent{.latent_dim = hub.integer("kv_lora_rank"),
                                .query_latent_dim = hub.integer("q_lora_rank", 0),
                                .latent_norm = true,
                                .bias = hub.flag("attention_bias", false),
                                .head_dim = plain,
                                .value_dim = hub.integer("v_head_dim"),
                                .rotary_dim = rotary_dim,
                                .scale = scale_of(hub, plain + rotary_dim, rotary)};
  c.norm_form = NormForm::rms;
  c.norm_epsilon = hub.number("rms_norm_eps", 1e-6);
  c.activation = activation_of(hub, "hidden_act", "silu", true);
  c.feed_forward_bias = hub.flag("mlp_bias", false);
  c.feed_forward = deepseek_feed_forward(hub, c.layers);
  return c;
}

// Both models have experts in all layers but the first ones.
void put_experts(Json& json, const TransformerConfig& c, bool v2) {
  const auto* const experts = std::get_if<Experts>(&c.feed_forward);
  json["first_k_dense_replace"] = experts ? static_cast<int64_t>(experts->dense_layers.size()) : c.layers;
  if (experts == nullptr) return;
  if (experts->shared_experts < 1) fail<ConfigError>("feed_forward.shared_experts = 0: needs at least 1");
  json.update({{"n_routed_experts", experts->experts},
               {"num_experts_per_tok", experts->experts_per_token},
               {"n_shared_experts", experts->shared_experts},
               {"moe_intermediate_size", experts->d_ff},
               {"routed_scaling_factor", experts->weight_scale},
               {"norm_topk_prob", experts->normalised_weights},
               {"scoring_func", v2 ? "softmax" : "sigmoid"},
               {"topk_method", !v2                   ? "noaux_tc"
                               : experts->groups > 1 ? "group_limited_greedy"
                                                     : "greedy"}});
  if (v2 && experts->groups == 1) return;
  json.update({{"n_group", experts->groups}, {"topk_group", experts->top_groups}});
}

// The other direction of scale_of(): scores are multiplied with the square of 0.1 * mscale_all_dim * ln(factor) + 1.
void put_scale(Json& json, const MultiHeadLatent& attention, const RotaryOptions& rotary) {
  if (attention.scale == 0 || rotary.scaling == RotaryScaling::none || !(rotary.factor > 1)) return;
  const double width = static_cast<double>(attention.head_dim + attention.rotary_dim);
  const double correction = std::sqrt(attention.scale * std::sqrt(width));
  Json& table = json["rope_parameters"];
  table["mscale_all_dim"] = (correction - 1) / (0.1 * std::log(rotary.factor));
  table["attention_factor"] = rotary.magnitude > 0 ? rotary.magnitude : 0.1 * std::log(rotary.factor) + 1;
}

Json describe(const DescribedModel& model) {
  const TransformerConfig& c = model.config;
  const auto* const attention = std::get_if<MultiHeadLatent>(&c.attention);
  if (attention == nullptr) fail<ConfigError>("attention = \"multi_head\": needs \"latent\"");
  const bool v2 = model.model_type == "deepseek_v2";
  Json json = sizes_of(c);
  put_rotary(json, c, attention->rotary_dim);
  const auto& rotary = std::get<RotaryOptions>(c.positions);
  put_scale(json, *attention, rotary);
  json.update({{"num_key_value_heads", c.heads},
               {"kv_lora_rank", attention->latent_dim},
               {"q_lora_rank", attention->query_latent_dim > 0 ? Json(attention->query_latent_dim) : Json(nullptr)},
               {"qk_nope_head_dim", attention->head_dim},
               {"qk_rope_head_dim", attention->rotary_dim},
               {"v_head_dim", attention->value_dim},
               {"head_dim", attention->rotary_dim},
               {"attention_bias", attention->bias},
               {"hidden_act", activation_name(c.activation, true)},
               {"rms_norm_eps", c.norm_epsilon}});
  if (v2) json["mlp_bias"] = c.feed_forward_bias;
  if (!v2) json["rope_interleave"] = rotary.pairing == RotaryPairing::interleaved;
  put_experts(json, c, v2);
  return json;
}

// `count` rows of each head, from its row `first` on. A head has `all` rows.
Transform part_of_heads(int64_t first, int64_t count, int64_t all) {
  return {.part = true, .first = first, .run = count, .period = all};
}

NameTable names(const TransformerConfig& c, const HubFiles&) {
  const auto& attention = std::get<MultiHeadLatent>(c.attention);
  const int64_t plain = attention.head_dim, rotary = attention.rotary_dim, value = attention.value_dim;
  const std::string ours = "decoder.layers.*.", theirs = "model.layers.*.", attend = theirs + "self_attn.";
  const std::vector<std::string> query = {attend + (attention.query_latent_dim > 0 ? "q_b_proj" : "q_proj")};
  const std::vector<std::string> compress = {attend + "kv_a_proj_with_mqa"}, decompress = {attend + "kv_b_proj"};
  NameTable table = expert_rows(ours + "feed_forward", theirs + "mlp", {"gate_proj", "up_proj"}, "down_proj");
  const NameTable others = {
      {"embedding", {"model.embed_tokens"}},
      {ours + "residual_1.norm", {theirs + "input_layernorm"}},
      {ours + "self_attention.w_q_compress", {attend + "q_a_proj"}},
      {ours + "self_attention.query_norm", {attend + "q_a_layernorm"}},
      {ours + "self_attention.w_q", query, part_of_heads(0, plain, plain + rotary)},
      {ours + "self_attention.w_q_rotary", query, part_of_heads(plain, rotary, plain + rotary)},
      {ours + "self_attention.w_kv_compress", compress, part_of_rows(0)},
      {ours + "self_attention.w_k_rotary", compress, part_of_rows(attention.latent_dim)},
      {ours + "self_attention.latent_norm", {attend + "kv_a_layernorm"}},
      {ours + "self_attention.w_k_decompress", decompress, part_of_heads(0, plain, plain + value)},
      {ours + "self_attention.w_v_decompress", decompress, part_of_heads(plain, value, plain + value)},
      {ours + "self_attention.w_o", {attend + "o_proj"}},
      {ours + "residual_3.norm", {theirs + "post_attention_layernorm"}},
      {ours + "feed_forward.linear_1", {theirs + "mlp.gate_proj", theirs + "mlp.up_proj"}},
      {ours + "feed_forward.linear_2", {theirs + "mlp.down_proj"}},
      {"decoder.norm", {"model.norm"}},
      {"projection", {"lm_head"}},
  };
  table.insert(table.end(), others.begin(), others.end());
  return table;
}

// Layers behind the last one predict tokens beyond the next: transformers does not read them either.
std::vector<std::string> further_layers(const HubFiles& files) {
  const int64_t first = files.config.integer("num_hidden_layers"),
                count = std::min(files.config.integer("num_nextn_predict_layers", 0), kMostHubLayers);
  std::vector<std::string> names;
  for (int64_t i = 0; i < count; ++i) names.push_back("model.layers." + std::to_string(first + i) + ".*");
  return names;
}

}  // namespace deepseek

Family deepseek_family() {
  return {.model_types = {"deepseek_v2", "deepseek_v3"},
          .classes = {{"DeepseekV2ForCausalLM", Architecture::decoder_lm, "deepseek_v2"},
                      {"DeepseekV3ForCausalLM", Architecture::decoder_lm, "deepseek_v3"}},
          .prefix = "model.",
          .translate = deepseek::translate,
          .names = deepseek::names,
          .describe = deepseek::describe,
          .ignored = {"*.rotary_emb.inv_freq"},
          .ignored_too = deepseek::further_layers,
          .untied = {"deepseek_v2", "deepseek_v3"}};
}

}  // namespace attune
