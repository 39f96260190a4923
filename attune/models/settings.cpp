#include "attune/models/settings.h"

namespace attune {

AttentionSetting self_attention_setting(const TransformerConfig& c, std::shared_ptr<const RelativeBias> bias) {
  AttentionSetting setting{.d_model = c.d_model,
                           .heads = c.heads,
                           .dropout = c.attention_dropout,
                           .positions = in_attention(c.positions),
                           .relative_bias = std::holds_alternative<RelativeBiasPositions>(c.positions),
                           .norm = norm_config(c),
                           .shared_layers = c.share_layers};
  if (setting.relative_bias) setting.positions.bias = std::move(bias);  // a local layer may have other positions
  return setting;
}

AttentionSetting cross_attention_setting(const TransformerConfig& c) {
  return {.d_model = c.d_model,
          .heads = c.heads,
          .dropout = c.attention_dropout,
          .self = false,
          .norm = norm_config(c),
          .shared_layers = c.share_layers};
}

PositionSetting position_setting(const TransformerConfig& c) {
  const bool lm = c.architecture == Architecture::decoder_lm;
  return {.d_model = c.position_width(),
          .context_length = lm ? c.context_length : 0,
          .width_field = lm || c.embedding_dim == 0 ? "d_model" : "embedding_dim"};
}

LayerNormConfig norm_config(const TransformerConfig& c) {
  return {.options = {.form = c.norm_form, .epsilon = c.norm_epsilon}, .bias = c.norm_bias};
}

FeedForwardConfig feed_forward_config(const TransformerConfig& c) {
  return {.d_model = c.d_model,
          .d_ff = c.d_ff,
          .activation = c.activation,
          .bias = c.feed_forward_bias,
          .dropout = c.activation_dropout};
}

ResidualConnectionConfig residual_config(const TransformerConfig& c) {
  return {.d_model = c.d_model,
          .dropout = c.dropout,
          .pre_norm = c.norm != NormPlacement::post,
          .layer_norm = norm_config(c).options,
          .norm_bias = c.norm_bias,
          .output_norm = c.norm == NormPlacement::sandwich};
}

}  // namespace attune
