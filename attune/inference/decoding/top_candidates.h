#pragma once

#include "attune/kernels/top_candidates.h"

namespace attune {

/// Writes the candidates of a row into `room`, see kernels/top_candidates.h, and returns how many there are. Throws
/// ShapeError for a row that does not exist, too little room or a wanted token that the row does not have;
/// NumericError, naming the row, when its logits are no distribution.
size_t top_candidates(const CandidateRow& row, const CandidateQuery& query, std::span<Candidate> room);

/// Makes the logits of `tokens` smaller, see kernels/top_candidates.h.
void penalize_tokens(const CandidateRow& row, std::span<const int32_t> tokens, double penalty);

}  // namespace attune
