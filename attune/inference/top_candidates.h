#pragma once

#include "attune/kernels/top_candidates.h"

namespace attune {

/// The candidates of a row, see kernels/top_candidates.h; returns how many `room` has then. Throws ShapeError for a row
/// that is not there, too little room or a token that is wanted and not there; NumericError, naming the row, where
/// there is no distribution.
size_t top_candidates(const CandidateRow& row, const CandidateQuery& query, std::span<Candidate> room);

/// Makes the logits of `tokens` smaller, see kernels/top_candidates.h.
void penalize_tokens(const CandidateRow& row, std::span<const int32_t> tokens, double penalty);

}  // namespace attune
