#include "attune/models/settings.h"

namespace attune {

AttentionSetting self_attention_setting(const TransformerConfig& c, std::shared_ptr<const RelativeBias> bias) {
  AttentionSetting setting{
      .d_model = c.d_model, .heads = c.heads, .dropout = c.attention_dropout, .positions = in_attention(c.positions)};
  setting.positions.bias = std::move(bias);
  return setting;
}

AttentionSetting cross_attention_setting(const TransformerConfig& c) {
  return {.d_model = c.d_model, .heads = c.heads, .dropout = c.attention_dropout, .self = false};
}

PositionSetting position_setting(const TransformerConfig& c) {
  return {.d_model = c.d_model, .context_length = c.architecture == Architecture::decoder_lm ? c.context_length : 0};
}

LayerNormOptions norm_options(const TransformerConfig& c) {
  return {.form = c.norm_form, .epsilon = c.norm_epsilon};
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
          .pre_norm = c.norm == NormPlacement::pre,
          .layer_norm = norm_options(c)};
}

}  // namespace attune
