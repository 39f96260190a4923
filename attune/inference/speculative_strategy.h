#pragma once
// Speculative sampling: a small model proposes tokens, the large one judges several of them at once.
//
// In each round the draft proposes up to draft_tokens tokens x, each drawn from its distribution q; the model gives its
// own distribution p at all of these positions in one pass. x is taken with probability min(1, p(x) / q(x)); the first
// that is not is replaced by a draw from max(p - q, 0), normalised, and ends the round; behind the last one that is
// taken stands one more token of p. So every token is distributed as the model's own, whatever the draft: Leviathan et
// al. 2023, "Fast Inference from Transformers via Speculative Decoding", section 2.3 and appendix A.1. With temperature
// 0 the text is the one without a draft.

#include "attune/inference/sampler.h"

namespace attune {

/// max(p - q, 0), normalised; p where nothing is left of it but rounding.
TokenDistribution residual(const TokenDistribution& p, const TokenDistribution& q);

}  // namespace attune
