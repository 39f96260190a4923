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
  Indices types = {};  // [total], of texts in several segments, see Embeddings; empty: all 0
};

/// Takes the ids of sequences one after another and the offsets of the sequences (0, ..., total). Throws ShapeError.
PackedTokens pack_tokens(std::span<const int32_t> ids, const std::vector<int32_t>& offsets);

}  // namespace attune
