// ALBERT: Lan et al. 2020. All layers are one, and the tables of embeddings are narrow.

#include "attune/hub/bert.h"
#include "attune/hub/families.h"
#include "attune/hub/translate.h"

namespace attune {
namespace {

TransformerConfig translate(const HubFiles& files) {
  const HubConfig& hub = files.config;
  hub.require("num_hidden_groups", 1);
  hub.require("inner_group_num", 1);
  TransformerConfig c = bert_encoder(files);
  c.activation = activation_of(hub, "hidden_act", "gelu_new");
  c.share_layers = true;
  c.embedding_dim = hub.integer("embedding_size", 128);
  if (c.embedding_dim == c.d_model) hub.refuse("embedding_size", "is not supported where it is hidden_size");
  c.pooler = true;
  set_masked_lm_head(c, files, "predictions.decoder", head_activation_of(hub, "hidden_act", "gelu_new"));
  return c;
}

NameTable names(const TransformerConfig&, const HubFiles& files) {
  const std::string ours = "encoder.layers.*.", theirs = "albert.encoder.albert_layer_groups.0.albert_layers.0.";
  return {
      {"embedding", {"albert.embeddings.word_embeddings"}},
      {"embedding.type", {"albert.embeddings.token_type_embeddings"}},
      {"embedding.position", {"albert.embeddings.position_embeddings"}},
      {"embedding.norm", {"albert.embeddings.LayerNorm"}},
      {"embedding.projection", {"albert.encoder.embedding_hidden_mapping_in"}},
      {ours + "self_attention.w_q", {theirs + "attention.query"}},
      {ours + "self_attention.w_k", {theirs + "attention.key"}},
      {ours + "self_attention.w_v", {theirs + "attention.value"}},
      {ours + "self_attention.w_o", {theirs + "attention.dense"}},
      {ours + "residual_1.norm", {theirs + "attention.LayerNorm"}},
      {ours + "feed_forward.linear_1", {theirs + "ffn"}},
      {ours + "feed_forward.linear_2", {theirs + "ffn_output"}},
      {ours + "residual_2.norm", {theirs + "full_layer_layer_norm"}},
      {"pooler", {"albert.pooler"}},
      {"head", {"classifier"}},
      {"transform", {"predictions.dense"}},
      {"transform.norm", {"predictions.LayerNorm"}},
      {"projection", {"predictions.decoder"}},
      {"projection.bias", {first_stored(files, {"predictions.decoder.bias", "predictions.bias"})}},
  };
}

}  // namespace

Family albert_family() {
  return {.model_types = {"albert"},
          .classes = {{"AlbertModel", Architecture::encoder},
                      {"AlbertForMaskedLM", Architecture::encoder_masked_lm},
                      {"AlbertForPreTraining", Architecture::encoder_masked_lm},
                      {"AlbertForSequenceClassification", Architecture::encoder_classifier}},
          .prefix = "albert.",
          .translate = translate,
          .names = names,
          // Of the other heads that a file may have.
          .ignored = {"*embeddings.position_ids", "predictions.*", "sop_classifier.*", "albert.pooler.*", "pooler.*"}};
}

}  // namespace attune
