#pragma once

#include "attune/nn/residual_connection.h"

namespace [[gnu::visibility("default")]] attune {

/// How one layer differs from the figure of Vaswani et al. 2017.
struct LayerOptions {
  /// Pre-norm only: x + attention(norm_1(x)) + feed_forward(norm_2(x)), Wang and Komatsuzaki 2021.
  bool parallel = false;
  bool attention_norm = true;  // pre-norm only: false leaves out the norm before self-attention
};

inline ResidualConnectionConfig of_attention(ResidualConnectionConfig residual, const LayerOptions& options) {
  residual.input_norm = residual.input_norm && options.attention_norm;
  return residual;
}

}  // namespace attune
