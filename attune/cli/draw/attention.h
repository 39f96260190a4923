#pragma once

#include <cstdint>
#include <string>

#include "attune/cli/draw/attention_view.h"

namespace attune::cli {

/// The heads of one layer.
struct AttentionPicture {
  AttentionRequest request;
  std::string kind;   // of a model that translates: encoder, decoder, cross; "": cross
  int64_t layer = 0;  // from 1; 0: the last
};

/// The picture as SVG. Throws as view_attention() does, and ConfigError for a kind or a layer that the model lacks.
std::string draw_attention(const AttentionPicture& picture);

}  // namespace attune::cli
