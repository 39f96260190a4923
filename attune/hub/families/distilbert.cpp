// DistilBERT: Sanh et al. 2019.

#include "attune/hub/describe.h"
#include "attune/hub/families.h"
#include "attune/hub/translate.h"

namespace attune {
namespace distilbert {

TransformerConfig translate(const HubFiles& files) {
  const HubConfig& hub = files.config;
  TransformerConfig c = encoder_model(files);
  c.d_model = hub.integer("dim", 768);
  c.heads = hub.integer("n_heads", 12);
  c.layers = hub.integer("n_layers", 6);
  c.d_ff = hub.integer("hidden_dim", 3072);
  c.activation = activation_of(hub, "activation", "gelu");
  c.norm = NormPlacement::post;
  c.norm_epsilon = 1e-12;
  c.embedding_norm = true;
  c.positions = LearnedPositions{.max_length = hub.integer("max_position_embeddings", 512)};
  c.pooler = true;
  c.transform_activation = Activation::relu;
  set_masked_lm_head(c, files, "vocab_projector", head_activation_of(hub, "activation", "gelu"));
  return c;
}

Json describe(const DescribedModel& model) {
  const TransformerConfig& c = model.config;
  multi_head_of(c);
  return {{"dim", c.d_model},
          {"n_heads", c.heads},
          {"n_layers", c.layers},
          {"hidden_dim", c.d_ff},
          {"activation", activation_name(c.activation)},
          {"max_position_embeddings", learned_positions_of(c)}};
}

NameTable names(const TransformerConfig&, const HubFiles&) {
  const std::string ours = "encoder.layers.*.", theirs = "distilbert.transformer.layer.*.";
  return {
      {"embedding", {"distilbert.embeddings.word_embeddings"}},
      {"embedding.position", {"distilbert.embeddings.position_embeddings"}},
      {"embedding.norm", {"distilbert.embeddings.LayerNorm"}},
      {ours + "self_attention.w_q", {theirs + "attention.q_lin"}},
      {ours + "self_attention.w_k", {theirs + "attention.k_lin"}},
      {ours + "self_attention.w_v", {theirs + "attention.v_lin"}},
      {ours + "self_attention.w_o", {theirs + "attention.out_lin"}},
      {ours + "residual_1.norm", {theirs + "sa_layer_norm"}},
      {ours + "feed_forward.linear_1", {theirs + "ffn.lin1"}},
      {ours + "feed_forward.linear_2", {theirs + "ffn.lin2"}},
      {ours + "residual_2.norm", {theirs + "output_layer_norm"}},
      {"pooler", {"pre_classifier"}},
      {"head", {"classifier"}},
      {"transform", {"vocab_transform"}},
      {"transform.norm", {"vocab_layer_norm"}},
      {"projection", {"vocab_projector"}},
  };
}

}  // namespace distilbert

Family distilbert_family() {
  return {.model_types = {"distilbert"},
          .classes = {{"DistilBertModel", Architecture::encoder, "distilbert"},
                      {"DistilBertForMaskedLM", Architecture::encoder_masked_lm, "distilbert"},
                      {"DistilBertForSequenceClassification", Architecture::encoder_classifier, "distilbert"}},
          .prefix = "distilbert.",
          .translate = distilbert::translate,
          .names = distilbert::names,
          .describe = distilbert::describe,
          .ignored = {"*embeddings.position_ids", "vocab_*"}};
}

}  // namespace attune
