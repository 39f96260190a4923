#pragma once

#include <cstdint>

#include "attune/nn/attention.h"

namespace attune {

/// The model around an attention.
struct AttentionSetting {
  int64_t d_model = 512;
  int64_t heads = 8;                  // divides d_model
  double dropout = 0;                 // on the attention weights
  bool self = true;                   // false: cross-attention, whose queries and keys have no common positions
  AttentionPositions positions = {};  // the model's; nothing for cross-attention

  int64_t head_dim() const { return d_model / heads; }
};

/// Throws ConfigError unless rotary positions can turn `width` numbers, which `field` says.
void check_rotary_width(const std::string& field, int64_t width, const RotaryOptions& rotary);

}  // namespace attune
