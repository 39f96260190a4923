#pragma once

#include <span>
#include <vector>

#include "attune/ops/sequences.h"
#include "attune/tensor/indices.h"

namespace [[gnu::visibility("default")]] attune {

/// Token ids of several sequences one after another, without padding.
struct PackedTokens {
  Indices ids;  // [total]
  Sequences sequences;
};

/// Packs ids that stand one after another, with their offsets (0, ..., total). Throws ShapeError.
PackedTokens pack_tokens(std::span<const int32_t> ids, const std::vector<int32_t>& offsets);

}  // namespace attune
