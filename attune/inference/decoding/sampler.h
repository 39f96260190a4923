#pragma once
// One token drawn from the distribution that a language model predicts.

#include <cstdint>
#include <span>
#include <vector>

#include "attune/inference/decoding/decoding_request.h"
#include "attune/models/sampling_config.h"

namespace attune {

/// The tokens that may be drawn, and their probabilities, which sum to 1; all other tokens have probability 0.
struct TokenDistribution {
  std::vector<int32_t> tokens;
  std::vector<double> probabilities;
};

/// A token with its logit, later with its probability.
struct TokenValue {
  int32_t token;
  double value;
};

/// The order of tokens by their values: the larger first, of equal ones the lower id.
inline bool better(const TokenValue& a, const TokenValue& b) {
  return a.value != b.value ? a.value > b.value : a.token < b.token;
}

/// The logit of a token that was in the text before, see SamplingConfig::repetition_penalty. Keskar et al. 2019 divide;
/// a negative logit has to be multiplied to become less likely.
inline double penalized(double logit, double penalty) {
  return logit > 0 ? logit / penalty : logit * penalty;
}

/// The distribution that SamplingConfig makes of a row of logits. Its fields are applied in their order, which is that
/// of Hugging Face Transformers. `past` are the tokens of the text so far, for the repetition penalty. Tokens in
/// `excluded` have probability 0. Where equally likely tokens compete for the last rank, lower ids stay; at least one
/// token stays. With temperature 0 only the likeliest token stays.
///
/// Throws NumericError when a logit is NaN or plus infinity, or all that are left are minus infinity.
TokenDistribution token_distribution(std::span<const float> logits, std::span<const int32_t> past,
                                     const SamplingConfig& config, std::span<const int32_t> excluded = {});

/// What token_distribution() does after penalties, exclusions and top_k: temperature, top_p and min_p. Takes at least
/// one token, with finite logits: all that are left in ascending order, or the likeliest `top_k`, best first.
TokenDistribution distribution_of(std::vector<TokenValue> tokens, const SamplingConfig& config);

/// Returns the token in whose share of [0, 1) `number` lies; the shares follow each other in the order of the tokens.
int32_t draw(const TokenDistribution& distribution, double number);

/// The log probability of a token by the softmax of the logits, and the `likeliest` of the tokens below `named_tokens`
/// with theirs, best first.
TokenScores token_scores(std::span<const float> logits, int32_t token, int64_t likeliest, int64_t named_tokens);

/// The number for the token `step` of the text `row`: uniform in [0, 1) and a pure function of its arguments.
double random_number(uint64_t seed, uint64_t row, uint64_t step);

}  // namespace attune
