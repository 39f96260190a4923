// GPT-2: Radford et al. 2019.

#include "attune/hub/describe.h"
#include "attune/hub/families.h"
#include "attune/hub/translate.h"

namespace attune {
namespace gpt2 {

TransformerConfig translate(const HubFiles& files) {
  const HubConfig& hub = files.config;
  hub.require("add_cross_attention", false);
  TransformerConfig c = language_model(files, "lm_head");
  c.d_model = hub.integer("n_embd");
  c.heads = hub.integer("n_head");
  c.layers = hub.integer("n_layer");
  c.d_ff = hub.integer("n_inner", 4 * c.d_model);
  c.context_length = hub.integer("n_positions", 1024);
  c.positions = LearnedPositions{};
  c.attention = MultiHead{.scale = hub.flag("scale_attn_weights", true) ? 0.0 : 1.0,
                          .scale_by_layer = hub.flag("scale_attn_by_inverse_layer_idx", false)};
  c.activation = activation_of(hub, "activation_function", "gelu_new");
  c.norm_epsilon = hub.number("layer_norm_epsilon", 1e-5);
  return c;
}

Json describe(const DescribedModel& model) {
  const TransformerConfig& c = model.config;
  const MultiHead& attention = multi_head_of(c);
  return {{"n_embd", c.d_model},
          {"n_head", c.heads},
          {"n_layer", c.layers},
          {"n_inner", c.d_ff},
          {"n_positions", learned_positions_of(c)},
          {"scale_attn_weights", attention.scale != 1},
          {"scale_attn_by_inverse_layer_idx", attention.scale_by_layer},
          {"activation_function", activation_name(c.activation)},
          {"layer_norm_epsilon", c.norm_epsilon}};
}

// Its matrices are stored as [in, out]; one of them computes queries, keys and values.
NameTable names(const TransformerConfig& c, const HubFiles&) {
  const std::string ours = "decoder.layers.*.", theirs = "transformer.h.*.";
  const std::vector<std::string> qkv = {theirs + "attn.c_attn"};
  const Transform transposed = {.transposed = true};
  return {
      {"embedding", {"transformer.wte"}},
      {"embedding.position", {"transformer.wpe"}},
      {ours + "residual_1.norm", {theirs + "ln_1"}},
      {ours + "self_attention.w_q", qkv, part_of_rows(0, true)},
      {ours + "self_attention.w_k", qkv, part_of_rows(c.d_model, true)},
      {ours + "self_attention.w_v", qkv, part_of_rows(2 * c.d_model, true)},
      {ours + "self_attention.w_o", {theirs + "attn.c_proj"}, transposed},
      {ours + "residual_3.norm", {theirs + "ln_2"}},
      {ours + "feed_forward.linear_1", {theirs + "mlp.c_fc"}, transposed},
      {ours + "feed_forward.linear_2", {theirs + "mlp.c_proj"}, transposed},
      {"decoder.norm", {"transformer.ln_f"}},
      {"projection", {"lm_head"}},
  };
}

}  // namespace gpt2

Family gpt2_family() {
  return {.model_types = {"gpt2"},
          .classes = {{"GPT2LMHeadModel", Architecture::decoder_lm, "gpt2"},
                      {"GPT2Model", Architecture::decoder_lm, "", true}},
          .prefix = "transformer.",
          .translate = gpt2::translate,
          .names = gpt2::names,
          .describe = gpt2::describe,
          .ignored = {"*.attn.bias", "*.attn.masked_bias"}};  // causal masks
}

}  // namespace attune
