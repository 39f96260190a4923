#pragma once
// Texts that an encoder reads together.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "attune/models/packed_tokens.h"
#include "attune/text/tokenizer.h"

namespace attune {

/// Indices of the texts that have tokens, in batches of similar length, longest first. A batch has at most `most_texts`
/// and `most_tokens`, but at least one text.
std::vector<std::vector<size_t>> batches_by_length(std::span<const Encoding> texts, int64_t most_texts,
                                                   int64_t most_tokens);

/// The texts of a batch one after another, with their type ids where the model has more than one (`token_types`). A
/// text without type ids has type 0. Throws DataError for a text that has not as many type ids as tokens.
PackedTokens pack_batch(std::span<const Encoding> texts, const std::vector<size_t>& batch, int64_t token_types);

}  // namespace attune
