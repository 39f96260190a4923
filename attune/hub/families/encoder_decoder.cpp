#include "attune/hub/families/encoder_decoder.h"

#include "attune/hub/translate.h"

namespace attune {
namespace {

constexpr const char* kSourceTable = "model.encoder.embed_tokens.weight";
constexpr const char* kTargetTable = "model.decoder.embed_tokens.weight";

}  // namespace

TransformerConfig bart_sizes(const HubFiles& files) {
  const HubConfig& hub = files.config;
  refuse_is_causal(hub);
  TransformerConfig c = without_dropout(Architecture::encoder_decoder);
  c.source_vocab = c.target_vocab = hub.integer("vocab_size");
  c.d_model = hub.integer("d_model");
  c.heads = hub.integer("encoder_attention_heads");
  c.layers = hub.integer("encoder_layers");
  c.d_ff = hub.integer("encoder_ffn_dim");
  c.decoder_heads = hub.integer("decoder_attention_heads");
  c.decoder_layers = hub.integer("decoder_layers");
  c.decoder_d_ff = hub.integer("decoder_ffn_dim");
  c.activation = activation_of(hub, "activation_function", "gelu");
  c.scale_embeddings = hub.flag("scale_embedding", false);
  c.share_embeddings = hub.flag("tie_word_embeddings", true) || !files.tensors.contains(kSourceTable) ||
                       !files.tensors.contains(kTargetTable);
  c.share_projection = !files.tensors.contains("lm_head.weight");
  c.projection_bias = files.tensors.contains("final_logits_bias");
  return c;
}

void refuse_is_causal(const HubConfig& config) {
  if (config.has("is_causal")) config.refuse("is_causal", "is for encoder and decoder alike, which is not supported");
}

void add_attention(NameTable& table, const std::string& ours, const std::string& theirs,
                   const std::array<const char*, 4>& projections) {
  const std::array own = {".w_q", ".w_k", ".w_v", ".w_o"};
  for (size_t i = 0; i < own.size(); ++i) table.push_back({ours + own[i], {theirs + "." + projections[i]}});
}

NameTable bart_names(const TransformerConfig& config, const HubFiles& files) {
  const std::string encoder = "model.encoder.", decoder = "model.decoder.";
  NameTable table = {
      {"source_embedding.weight",
       {config.share_embeddings ? first_stored(files, {"model.shared.weight", kSourceTable, kTargetTable})
                                : kSourceTable}},
      {"target_embedding.weight", {kTargetTable}},
      {"source_embedding.norm", {encoder + "layernorm_embedding"}},
      {"target_embedding.norm", {decoder + "layernorm_embedding"}},
      // The two rows before the first position are for padding, which we do not have.
      {"source_embedding.position", {encoder + "embed_positions"}, part_of_rows(2)},
      {"target_embedding.position", {decoder + "embed_positions"}, part_of_rows(2)},
      {"encoder.norm", {encoder + "layer_norm"}},
      {"decoder.norm", {decoder + "layer_norm"}},
      {"projection.weight", {"lm_head.weight"}},
      {"projection.bias", {"final_logits_bias"}, {.one_row = true}},
  };
  const std::array projections = {"q_proj", "k_proj", "v_proj", "out_proj"};
  for (const std::string stack : {"encoder", "decoder"}) {
    const std::string ours = stack + ".layers.*.", theirs = "model." + stack + ".layers.*.";
    const std::string last_norm = stack == "encoder" ? "residual_2.norm" : "residual_3.norm";
    add_attention(table, ours + "self_attention", theirs + "self_attn", projections);
    table.push_back({ours + "residual_1.norm", {theirs + "self_attn_layer_norm"}});
    if (stack == "decoder") {
      add_attention(table, ours + "cross_attention", theirs + "encoder_attn", projections);
      table.push_back({ours + "residual_2.norm", {theirs + "encoder_attn_layer_norm"}});
    }
    table.push_back({ours + "feed_forward.linear_1", {theirs + "fc1"}});
    table.push_back({ours + "feed_forward.linear_2", {theirs + "fc2"}});
    table.push_back({ours + last_norm, {theirs + "final_layer_norm"}});
  }
  return table;
}

}  // namespace attune
