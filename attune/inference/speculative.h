#pragma once
// Speculative decoding: a small model proposes tokens, the large one judges several of them at once.

#include <vector>

#include "attune/inference/running_text.h"
#include "attune/inference/sampler.h"

namespace attune {

/// Throws ConfigError when the draft does not fit the model or the options.
void check_draft(const GenerationRun& run);

/// Generates to the ends of these texts. In each round the draft proposes up to draft_tokens tokens x, each drawn from
/// its distribution q; the model gives its own distribution p at all of these places in one pass. x is taken with
/// probability min(1, p(x) / q(x)); the first that is not is replaced by a draw from max(p - q, 0), normalised, and
/// ends the round; behind the last one that is taken stands one more token of p. So every token is distributed as the
/// model's own, whatever the draft: Leviathan et al. 2023, "Fast Inference from Transformers via Speculative
/// Decoding", section 2.3 and appendix A.1. With temperature 0 the text is the one without a draft.
void generate_speculatively(const GenerationRun& run, std::vector<RunningText*> texts);

/// max(p - q, 0), normalised; p where nothing is left of it but rounding.
TokenDistribution residual(const TokenDistribution& p, const TokenDistribution& q);

}  // namespace attune
