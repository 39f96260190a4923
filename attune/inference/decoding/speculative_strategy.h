#pragma once
// Speculative sampling: a small model proposes tokens, the large one judges several of them at once.
//
// The model reads the prompt and gives the first token as it does without a draft. Then, in each round, the draft
// proposes up to draft_tokens tokens x, each drawn from its distribution q; the model gives its own distribution p at
// all of these positions in one pass. x is accepted with probability min(1, p(x) / q(x)). The first x that is not
// accepted is replaced by a draw from max(p - q, 0), normalised, and ends the round. When all are accepted, one more
// token is drawn from p. So every token has the model's own distribution, whatever the draft: Leviathan et al. 2023,
// "Fast Inference from Transformers via Speculative Decoding", section 2.3 and appendix A.1. With temperature 0 the
// text is the one without a draft, since what is judged is read as single tokens are (see kQueriesByRow).

#include <cstdint>

#include "attune/inference/decoding/sampler.h"

namespace attune {

/// The most that a draft may propose at once. The model judges them together with the token before them, which has to
/// stay no prompt: see kQueriesByRow.
inline constexpr int64_t kMostDraftTokens = 64;

/// max(p - q, 0), normalised; p where the difference is only rounding.
TokenDistribution residual(const TokenDistribution& p, const TokenDistribution& q);

}  // namespace attune
