#pragma once
// Where the attention of a model goes while it reads a text.

#include <string>

#include "attune/cli/draw/heat_map.h"
#include "attune/models/config.h"

namespace attune::cli {

struct AttentionRequest {
  std::string folder;  // of the model
  std::string text;    // the source of a translation
  std::string target;  // its translation; "": the model's own, greedy
};

/// The weights of a pass over the text; those of an encoder_decoder with a target given. Throws DataError for a text
/// that is empty or too long to be shown, ConfigError where the architecture does not fit.
AttentionPage view_attention(const AttentionRequest& request, Architecture architecture);

}  // namespace attune::cli
