#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "attune/cli/draw/attention_view.h"

namespace attune::cli {

/// The heads of one layer as SVG.
///   kind    of a model that translates: encoder, decoder, cross; "": cross
///   layer   from 1; none: the last
/// Throws ConfigError for a kind or a layer that the model lacks.
std::string draw_attention(const AttentionPage& page, const std::string& kind, std::optional<int64_t> layer);

}  // namespace attune::cli
