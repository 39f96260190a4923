// OPT: Zhang et al. 2022.

#include "attune/hub/describe.h"
#include "attune/hub/families.h"
#include "attune/hub/translate.h"

namespace attune {
namespace opt {

TransformerConfig translate(const HubFiles& files) {
  const HubConfig& hub = files.config;
  hub.require("layer_norm_elementwise_affine", true);
  TransformerConfig c = language_model(files, "lm_head");
  c.d_model = hub.integer("hidden_size");
  set_embedding_dim(c, hub.integer("word_embed_proj_dim", c.d_model));
  c.heads = hub.integer("num_attention_heads");
  c.layers = hub.integer("num_hidden_layers");
  c.d_ff = hub.integer("ffn_dim");
  const bool bias = hub.flag("enable_bias", true);
  c.attention = MultiHead{.bias = bias ? AttentionBias::all : AttentionBias::none};
  c.feed_forward_bias = bias;
  c.context_length = hub.integer("max_position_embeddings", 2048);
  c.positions = LearnedPositions{};
  c.activation = activation_of(hub, "activation_function", "relu");
  c.norm = hub.flag("do_layer_norm_before", true) ? NormPlacement::pre : NormPlacement::post;
  c.final_norm = !hub.flag("_remove_final_layer_norm", false);
  return c;
}

Json describe(const DescribedModel& model) {
  const TransformerConfig& c = model.config;
  const MultiHead& attention = multi_head_of(c);
  return {{"hidden_size", c.d_model},
          {"word_embed_proj_dim", c.embedding_width()},
          {"num_attention_heads", c.heads},
          {"num_hidden_layers", c.layers},
          {"ffn_dim", c.d_ff},
          {"enable_bias", attention.bias != AttentionBias::none || c.feed_forward_bias},
          {"max_position_embeddings", learned_positions_of(c)},
          {"activation_function", activation_name(c.activation)},
          {"do_layer_norm_before", c.norm != NormPlacement::post},
          {"_remove_final_layer_norm", c.norm != NormPlacement::post && !c.final_norm}};
}

NameTable names(const TransformerConfig&, const HubFiles&) {
  const std::string ours = "decoder.layers.*.", theirs = "model.decoder.layers.*.";
  return {
      {"embedding", {"model.decoder.embed_tokens"}},
      {"embedding.token_projection", {"model.decoder.project_in"}},
      {"state_projection", {"model.decoder.project_out"}},
      {"embedding.position", {"model.decoder.embed_positions"}, part_of_rows(2)},  // two are for padding
      {ours + "residual_1.norm", {theirs + "self_attn_layer_norm"}},
      {ours + "self_attention.w_q", {theirs + "self_attn.q_proj"}},
      {ours + "self_attention.w_k", {theirs + "self_attn.k_proj"}},
      {ours + "self_attention.w_v", {theirs + "self_attn.v_proj"}},
      {ours + "self_attention.w_o", {theirs + "self_attn.out_proj"}},
      {ours + "residual_3.norm", {theirs + "final_layer_norm"}},
      {ours + "feed_forward.linear_1", {theirs + "fc1"}},
      {ours + "feed_forward.linear_2", {theirs + "fc2"}},
      {"decoder.norm", {"model.decoder.final_layer_norm"}},
      {"projection", {"lm_head"}},
  };
}

}  // namespace opt

Family opt_family() {
  return {.model_types = {"opt"},
          .classes = {{"OPTForCausalLM", Architecture::decoder_lm, "opt"},
                      {"OPTModel", Architecture::decoder_lm, "", true}},
          .prefix = "model.",
          .translate = opt::translate,
          .names = opt::names,
          .describe = opt::describe,
          .ignored = {}};
}

}  // namespace attune
