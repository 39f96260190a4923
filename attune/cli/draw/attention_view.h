#pragma once
// The attention weights of a model that reads a text.

#include <cstdint>
#include <string>

#include "attune/cli/draw/heat_map.h"

namespace attune::cli {

inline constexpr int64_t kMostTokensOfPage = 200;  // of a text, with those that the model adds

struct AttentionRequest {
  std::string folder;              // of the model
  std::string text;                // the source of a translation
  std::string target;              // its translation; "": the model's own, greedy
  std::string text_name = "text";  // what errors call the text
  int64_t most_tokens = kMostTokensOfPage;
};

/// Returns the weights of one pass over the text; for an encoder_decoder, over the text and its target. Throws
/// DataError for a text that is empty or too long to be shown, ConfigError for a model whose attention is not shown.
AttentionPage view_attention(const AttentionRequest& request);

}  // namespace attune::cli
