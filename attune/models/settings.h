#pragma once
// The settings of each part of a model, taken from the model's configuration.

#include "attune/models/config.h"
#include "attune/models/kinds/attention_setting.h"
#include "attune/nn/residual_connection.h"

namespace attune {

AttentionSetting self_attention_setting(const TransformerConfig& config);
AttentionSetting cross_attention_setting(const TransformerConfig& config);
PositionSetting position_setting(const TransformerConfig& config);
LayerNormOptions norm_options(const TransformerConfig& config);
FeedForwardConfig feed_forward_config(const TransformerConfig& config);
ResidualConnectionConfig residual_config(const TransformerConfig& config);

}  // namespace attune
