#pragma once
// Sequences that are read together.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "attune/inference/token_sequences.h"
#include "attune/models/packed_tokens.h"

namespace attune {

/// Indices of the sequences that have tokens, in batches of similar length, longest first. A batch has at most
/// `most_sequences` and `most_tokens`, but at least one sequence.
std::vector<std::vector<size_t>> batches_by_length(const TokenSequences& sequences, int64_t most_sequences,
                                                   int64_t most_tokens);

/// The sequences of a batch one after another.
PackedTokens pack_batch(const TokenSequences& sequences, const std::vector<size_t>& batch);

}  // namespace attune
