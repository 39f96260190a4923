#pragma once
// One token drawn from the distribution that a language model predicts.

#include <cstdint>
#include <span>
#include <vector>

#include "attune/models/sampling_config.h"

namespace attune {

/// The tokens that may be drawn, and their probabilities, which sum to 1; a token that is not there has none.
struct TokenDistribution {
  std::vector<int32_t> tokens;
  std::vector<double> probabilities;
};

/// What SamplingConfig makes of a row of logits, in the order of its fields, which is that of Hugging Face
/// Transformers. `past` are the tokens of the text so far, for the repetition penalty. Those in `excluded` have no
/// probability. Among equal tokens at the edge of what is kept, those with lower ids stay; at least one token stays.
/// With temperature 0 it is the likeliest one.
///
/// Throws NumericError where there is no distribution: a logit is NaN or plus infinity, or none is left that is not
/// minus infinity.
TokenDistribution token_distribution(std::span<const float> logits, std::span<const int32_t> past,
                                     const SamplingConfig& config, std::span<const int32_t> excluded = {});

/// The token whose share of the distribution `number`, from [0, 1), falls into.
int32_t draw(const TokenDistribution& distribution, double number);

/// The number for the token `step` of the text `row`: uniform in [0, 1) and a pure function of its arguments.
double random_number(uint64_t seed, uint64_t row, uint64_t step);

}  // namespace attune
