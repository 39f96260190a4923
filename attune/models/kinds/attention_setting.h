#pragma once

#include <cstdint>

#include "attune/nn/attention/attention.h"
#include "attune/nn/layer_norm.h"

namespace attune {

/// What an attention needs to know of its model.
struct AttentionSetting {
  int64_t d_model = 512;
  int64_t heads = 8;
  const char* heads_field = "heads";          // what the configuration calls them, for messages
  const char* positions_field = "positions";  // likewise
  double dropout = 0;                         // on the attention weights
  bool self = true;                           // false: cross-attention, whose queries and keys have no common positions
  AttentionPositions positions = {};          // of the model; the defaults for cross-attention
  bool relative_bias = false;                 // the layers of the stack share one, see RelativeBiasPositions
  LayerNormConfig norm = {};                  // of the model
  int64_t layer = 0;                          // that the attention is in
  bool shared_layers = false;                 // whether it may be in several, see TransformerConfig::share_layers

  int64_t head_dim() const { return d_model / heads; }
};

/// Throws ConfigError unless heads divide d_model.
void check_divides_width(const AttentionSetting& setting);

/// Throws ConfigError unless `scale` is a positive finite number, or 0 for the default.
void check_attention_scale(const std::string& field, double scale);

/// Throws ConfigError, naming `field` or a field of the positions, unless the rotary positions of the setting are valid
/// and can rotate `width` numbers.
void check_rotary_width(const std::string& field, int64_t width, const AttentionSetting& setting);

}  // namespace attune
