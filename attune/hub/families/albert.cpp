// ALBERT: Lan et al. 2020. Layers share parameters, and the tables of embeddings are narrow.

#include <fmt/format.h>

#include "attune/hub/describe.h"
#include "attune/hub/families.h"
#include "attune/hub/families/bert.h"
#include "attune/hub/translate.h"

namespace attune {
namespace albert {

TransformerConfig translate(const HubFiles& files) {
  const HubConfig& hub = files.config;
  TransformerConfig c = bert_encoder(files);
  c.activation = activation_of(hub, "hidden_act", "gelu_new");
  c.share_layers = true;
  c.layer_groups = hub.integer("num_hidden_groups", 1);
  c.layer_block = hub.integer("inner_group_num", 1);
  c.layers *= c.layer_block;  // each layer of transformers is a block
  c.embedding_dim = hub.integer("embedding_size", 128);
  if (c.embedding_dim == 0) hub.refuse("embedding_size", "needs a number above 0");
  c.pooler = true;
  set_masked_lm_head(c, files, "predictions.decoder", head_activation_of(hub, "hidden_act", "gelu_new"));
  return c;
}

Json describe(const DescribedModel& model) {
  const TransformerConfig& c = model.config;
  Json json = bert_fields(c);
  json.update({{"embedding_size", c.embedding_width()},
               {"num_hidden_layers", c.layers / c.layer_block},
               {"num_hidden_groups", c.layer_groups},
               {"inner_group_num", c.layer_block}});
  return json;
}

// The rows of a layer that has parameters of its own.
NameTable layer_names(const TransformerConfig& c, int64_t layer) {
  const std::string ours = fmt::format("encoder.layers.{}.", layer);
  const std::string theirs = fmt::format("albert.encoder.albert_layer_groups.{}.albert_layers.{}.",
                                         layer / (c.layers / c.layer_groups), layer % c.layer_block);
  return {
      {ours + "self_attention.w_q", {theirs + "attention.query"}},
      {ours + "self_attention.w_k", {theirs + "attention.key"}},
      {ours + "self_attention.w_v", {theirs + "attention.value"}},
      {ours + "self_attention.w_o", {theirs + "attention.dense"}},
      {ours + "residual_1.norm", {theirs + "attention.LayerNorm"}},
      {ours + "feed_forward.linear_1", {theirs + "ffn"}},
      {ours + "feed_forward.linear_2", {theirs + "ffn_output"}},
      {ours + "residual_2.norm", {theirs + "full_layer_layer_norm"}},
  };
}

NameTable names(const TransformerConfig& c, const HubFiles& files) {
  NameTable table = {
      {"embedding", {"albert.embeddings.word_embeddings"}},
      {"embedding.type", {"albert.embeddings.token_type_embeddings"}},
      {"embedding.position", {"albert.embeddings.position_embeddings"}},
      {"embedding.norm", {"albert.embeddings.LayerNorm"}},
      {"embedding.projection", {"albert.encoder.embedding_hidden_mapping_in"}},
      {"pooler", {"albert.pooler"}},
      {"head", {"classifier"}},
      {"transform", {"predictions.dense"}},
      {"transform.norm", {"predictions.LayerNorm"}},
      {"projection", {"predictions.decoder"}},
      {"projection.bias", {projection_bias_name(c, files, "predictions.decoder.bias", "predictions.bias")}},
  };
  for (int64_t i = 0; i < c.layers; ++i) {
    if (c.first_with_parameters_of(i) != i) continue;
    const NameTable layer = layer_names(c, i);
    table.insert(table.end(), layer.begin(), layer.end());
  }
  return table;
}

}  // namespace albert

Family albert_family() {
  return {.model_types = {"albert"},
          .classes = {{"AlbertModel", Architecture::encoder, "albert"},
                      {"AlbertForMaskedLM", Architecture::encoder_masked_lm, "albert"},
                      {"AlbertForPreTraining", Architecture::encoder_masked_lm, ""},
                      {"AlbertForSequenceClassification", Architecture::encoder_classifier, "albert"}},
          .prefix = "albert.",
          .translate = albert::translate,
          .names = albert::names,
          .describe = albert::describe,
          // Of the other heads that a file may have.
          .ignored = {"*embeddings.position_ids", "predictions.*", "sop_classifier.*", "albert.pooler.*", "pooler.*"}};
}

}  // namespace attune
