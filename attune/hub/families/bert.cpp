// BERT: Devlin et al. 2019.

#include "attune/hub/families/bert.h"

#include "attune/hub/describe.h"
#include "attune/hub/families.h"
#include "attune/hub/translate.h"

namespace attune {
namespace bert {

constexpr const char* kDecoder = "cls.predictions.decoder";

TransformerConfig translate(const HubFiles& files) {
  TransformerConfig c = bert_encoder(files);
  c.pooler = true;
  set_masked_lm_head(c, files, kDecoder, head_activation_of(files.config, "hidden_act", "gelu"));
  return c;
}

Json describe(const DescribedModel& model) {
  return bert_fields(model.config);
}

NameTable names(const TransformerConfig& c, const HubFiles& files) {
  NameTable table = bert_encoder_names("bert.");
  const NameTable heads = {
      {"pooler", {"bert.pooler.dense"}},
      {"head", {"classifier"}},
      {"transform", {"cls.predictions.transform.dense"}},
      {"transform.norm", {"cls.predictions.transform.LayerNorm"}},
      {"projection", {kDecoder}},
      {"projection.bias", {projection_bias_name(c, files, "cls.predictions.decoder.bias", "cls.predictions.bias")}},
  };
  table.insert(table.end(), heads.begin(), heads.end());
  return table;
}

}  // namespace bert

TransformerConfig bert_encoder(const HubFiles& files) {
  const HubConfig& hub = files.config;
  hub.require("position_embedding_type", "absolute");
  hub.require("is_decoder", false);
  hub.require("add_cross_attention", false);
  TransformerConfig c = encoder_model(files);
  set_sizes(c, hub);
  c.activation = activation_of(hub, "hidden_act", "gelu");
  c.norm = NormPlacement::post;
  c.norm_epsilon = hub.number("layer_norm_eps", 1e-12);
  c.embedding_norm = true;
  c.token_types = hub.integer("type_vocab_size", 2);
  c.positions = LearnedPositions{.max_length = hub.integer("max_position_embeddings", 512)};
  return c;
}

NameTable bert_encoder_names(const std::string& base) {
  const std::string ours = "encoder.layers.*.", theirs = base + "encoder.layer.*.";
  return {
      {"embedding", {base + "embeddings.word_embeddings"}},
      {"embedding.type", {base + "embeddings.token_type_embeddings"}},
      {"embedding.position", {base + "embeddings.position_embeddings"}},
      {"embedding.norm", {base + "embeddings.LayerNorm"}},
      {ours + "self_attention.w_q", {theirs + "attention.self.query"}},
      {ours + "self_attention.w_k", {theirs + "attention.self.key"}},
      {ours + "self_attention.w_v", {theirs + "attention.self.value"}},
      {ours + "self_attention.w_o", {theirs + "attention.output.dense"}},
      {ours + "residual_1.norm", {theirs + "attention.output.LayerNorm"}},
      {ours + "feed_forward.linear_1", {theirs + "intermediate.dense"}},
      {ours + "feed_forward.linear_2", {theirs + "output.dense"}},
      {ours + "residual_2.norm", {theirs + "output.LayerNorm"}},
  };
}

Family bert_family() {
  return {.model_types = {"bert"},
          .classes = {{"BertModel", Architecture::encoder, "bert"},
                      {"BertForMaskedLM", Architecture::encoder_masked_lm, "bert"},
                      {"BertForPreTraining", Architecture::encoder_masked_lm, ""},
                      {"BertForSequenceClassification", Architecture::encoder_classifier, "bert"}},
          .prefix = "bert.",
          .translate = bert::translate,
          .names = bert::names,
          .describe = bert::describe,
          // Of the other heads that a file may have.
          .ignored = {"*embeddings.position_ids", "cls.*", "bert.pooler.*", "pooler.*"}};
}

}  // namespace attune
