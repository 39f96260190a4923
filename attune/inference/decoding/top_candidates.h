#pragma once

#include "attune/kernels/top_candidates.h"

namespace attune {

/// Answers all jobs, whose rows are on one device, see kernels/top_candidates.h. Throws ShapeError for a row that does
/// not exist, too little room, or a wanted or penalized token that the row does not have.
void top_candidates(std::span<CandidateJob> jobs);

}  // namespace attune
