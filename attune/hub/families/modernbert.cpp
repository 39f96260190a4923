// ModernBERT: Warner et al. 2024.

#include <algorithm>

#include "attune/hub/describe.h"
#include "attune/hub/families.h"
#include "attune/hub/translate.h"

namespace attune {
namespace modernbert {

void set_attention(TransformerConfig& c, const HubConfig& hub) {
  c.attention = MultiHead{.bias = hub.flag("attention_bias", false) ? AttentionBias::all : AttentionBias::none};
  c.positions = rotary_of(
      hub, {.layer_type = "full_attention", .base_field = "global_rope_theta", .base = 160000, .any_length = true});
  const int64_t every = hub.integer("global_attn_every_n_layers", 3);
  if (every < 1) hub.refuse("global_attn_every_n_layers", "needs at least 1");
  set_layer_attention(c, hub, [&](int64_t layer) { return layer % every != 0; });
  c.local_positions =
      rotary_of(hub, {.layer_type = "sliding_attention", .base_field = "local_rope_theta", .any_length = true});
  // As many keys before a query as after it, and the query's own.
  if (!c.layer_attention.empty()) c.local_window = hub.integer("local_attention", 128) / 2 + 1;
}

TransformerConfig translate(const HubFiles& files) {
  const HubConfig& hub = files.config;
  TransformerConfig c = encoder_model(files);
  set_sizes(c, hub);
  set_attention(c, hub);
  c.activation = activation_of(hub, "hidden_activation", "gelu", true);
  c.feed_forward_bias = hub.flag("mlp_bias", false);
  c.norm_epsilon = hub.number("norm_eps", 1e-5);
  c.norm_bias = hub.flag("norm_bias", false);
  c.embedding_norm = true;
  c.first_norm = false;
  c.pooler = c.prediction_transform = c.transform_norm = true;
  c.transform_bias = hub.flag("classifier_bias", false);
  c.transform_activation = head_activation_of(hub, "classifier_activation", "gelu");
  const std::string pooling = hub.text("classifier_pooling", "cls");
  if (pooling != "cls" && pooling != "mean") hub.refuse("classifier_pooling", "is not supported");
  c.pooling = pooling == "mean" ? Pooling::mean : Pooling::first;
  c.share_projection = !files.tensors.contains("decoder.weight");
  c.projection_bias = files.tensors.contains("decoder.bias");
  return c;
}

Json describe(const DescribedModel& model) {
  const TransformerConfig& c = model.config;
  const MultiHead& attention = multi_head_of(c);
  const PositionKind& local = c.layer_attention.empty() ? c.positions : c.local_positions;
  Json json = sizes_of(c);
  json.update({{"attention_bias", attention.bias != AttentionBias::none},
               {"mlp_bias", c.feed_forward_bias},
               {"norm_bias", c.norm_bias},
               {"norm_eps", c.norm_epsilon},
               {"hidden_activation", activation_name(c.activation, true)},
               {"layer_types", layer_types_of(c)},
               {"local_attention", 2 * (std::max<int64_t>(c.local_window, 1) - 1)},
               {"rope_parameters",
                {{"full_attention", rope_parameters_of(c.positions, attention.head_dim)},
                 {"sliding_attention", rope_parameters_of(local, attention.head_dim)}}},
               {"classifier_bias", c.transform_bias},
               {"classifier_activation", activation_name(c.transform_activation)},
               {"classifier_pooling", c.pooling == Pooling::mean ? "mean" : "cls"},
               {"decoder_bias", c.projection_bias}});
  return json;
}

NameTable names(const TransformerConfig& c, const HubFiles&) {
  const std::string ours = "encoder.layers.*.", theirs = "model.layers.*.";
  const std::vector<std::string> qkv = {theirs + "attn.Wqkv"};
  return {
      {"embedding", {"model.embeddings.tok_embeddings"}},
      {"embedding.norm", {"model.embeddings.norm"}},
      {ours + "residual_1.norm", {theirs + "attn_norm"}},
      {ours + "self_attention.w_q", qkv, part_of_rows(0)},
      {ours + "self_attention.w_k", qkv, part_of_rows(c.d_model)},
      {ours + "self_attention.w_v", qkv, part_of_rows(2 * c.d_model)},
      {ours + "self_attention.w_o", {theirs + "attn.Wo"}},
      {ours + "residual_2.norm", {theirs + "mlp_norm"}},
      {ours + "feed_forward.linear_1", {theirs + "mlp.Wi"}},
      {ours + "feed_forward.linear_2", {theirs + "mlp.Wo"}},
      {"encoder.norm", {"model.final_norm"}},
      {"pooler", {"head.dense"}},
      {"pooler.norm", {"head.norm"}},
      {"head", {"classifier"}},
      {"transform", {"head.dense"}},
      {"transform.norm", {"head.norm"}},
      {"projection", {"decoder"}},
  };
}

}  // namespace modernbert

Family modernbert_family() {
  return {.model_types = {"modernbert"},
          .classes = {{"ModernBertModel", Architecture::encoder, "modernbert"},
                      {"ModernBertForMaskedLM", Architecture::encoder_masked_lm, "modernbert"},
                      {"ModernBertForSequenceClassification", Architecture::encoder_classifier, "modernbert"}},
          .prefix = "model.",
          .translate = modernbert::translate,
          .names = modernbert::names,
          .describe = modernbert::describe,
          .ignored = {"head.*", "decoder.*"}};  // of another class
}

}  // namespace attune
