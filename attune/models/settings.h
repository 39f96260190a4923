#pragma once
// The settings of each part of a model, taken from the model's configuration.

#include "attune/models/config.h"
#include "attune/models/kinds/attention_setting.h"
#include "attune/nn/residual_connection.h"

namespace attune {

/// `bias` is what the layers of the stack share, see build_bias().
AttentionSetting self_attention_setting(const TransformerConfig& config, std::shared_ptr<const RelativeBias> bias = {});
AttentionSetting cross_attention_setting(const TransformerConfig& config);
PositionSetting position_setting(const TransformerConfig& config);
LayerNormConfig norm_config(const TransformerConfig& config);
FeedForwardConfig feed_forward_config(const TransformerConfig& config);
ResidualConnectionConfig residual_config(const TransformerConfig& config);

}  // namespace attune
