#include "attune/inference/decoding/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "attune/base/fail.h"
#include "attune/base/random.h"

namespace attune {
namespace {

void penalize(std::vector<TokenValue>& candidates, std::span<const int32_t> past, double penalty) {
  if (penalty == 1) return;
  std::vector<bool> seen(candidates.size());
  for (const int32_t token : past) {
    if (token < 0 || token >= static_cast<int64_t>(candidates.size()))
      fail<DataError>("token id {} is outside the vocabulary of {}", token, candidates.size());
    const auto i = static_cast<size_t>(token);
    if (seen[i]) continue;
    seen[i] = true;
    double& logit = candidates[i].value;
    logit = penalized(logit, penalty);
  }
}

std::vector<TokenValue> checked_candidates(std::span<const float> logits) {
  std::vector<TokenValue> candidates;
  candidates.reserve(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) {
    if (!(logits[i] < std::numeric_limits<float>::infinity()))
      fail<NumericError>("sampling: the logit of token {} is {}", i, logits[i]);
    candidates.push_back({static_cast<int32_t>(i), static_cast<double>(logits[i])});
  }
  return candidates;
}

// Takes a candidate for every token, in the order of their ids: a model may exclude a tail of ten thousands.
void keep_possible(std::vector<TokenValue>& candidates, std::span<const int32_t> excluded) {
  constexpr double kImpossible = -std::numeric_limits<double>::infinity();
  for (const int32_t token : excluded)
    if (token >= 0 && static_cast<size_t>(token) < candidates.size())
      candidates[static_cast<size_t>(token)].value = kImpossible;
  std::erase_if(candidates, [](const TokenValue& c) { return c.value == kImpossible; });
  if (candidates.empty()) fail<NumericError>("sampling: no token is possible, every logit that counts is -inf");
}

void keep_likeliest(std::vector<TokenValue>& candidates, size_t count) {
  if (count >= candidates.size()) return;
  std::nth_element(candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(count), candidates.end(),
                   better);
  candidates.resize(count);
  std::sort(candidates.begin(), candidates.end(), better);  // nth_element() leaves any order
}

// Logits to probabilities. The largest logit is subtracted before the division, so that no temperature is too small.
void to_probabilities(std::vector<TokenValue>& candidates, double temperature) {
  const double largest = std::min_element(candidates.begin(), candidates.end(), better)->value;
  double sum = 0;
  for (TokenValue& c : candidates) sum += c.value = std::exp((c.value - largest) / temperature);
  for (TokenValue& c : candidates) c.value /= sum;
}

void keep_nucleus(std::vector<TokenValue>& candidates, double top_p) {
  if (top_p >= 1) return;
  // Tokens below this together have less than 1 - top_p, so that they are not needed, nor sorted.
  const double least = (1 - top_p) / static_cast<double>(candidates.size());
  std::erase_if(candidates, [&](const TokenValue& c) { return c.value < least; });
  std::sort(candidates.begin(), candidates.end(), better);
  double sum = 0;
  size_t kept = 0;
  while (kept < candidates.size() && sum < top_p) sum += candidates[kept++].value;
  candidates.resize(kept);
}

void keep_near_the_likeliest(std::vector<TokenValue>& candidates, double min_p) {
  if (min_p <= 0) return;
  const double least = min_p * std::min_element(candidates.begin(), candidates.end(), better)->value;
  std::erase_if(candidates, [&](const TokenValue& c) { return c.value < least; });
}

}  // namespace

TokenDistribution token_distribution(std::span<const float> logits, std::span<const int32_t> past,
                                     const SamplingConfig& config, std::span<const int32_t> excluded) {
  config.validate();
  std::vector<TokenValue> candidates = checked_candidates(logits);
  penalize(candidates, past, config.repetition_penalty);
  keep_possible(candidates, excluded);
  if (config.temperature == 0) {
    keep_likeliest(candidates, 1);
    return {{candidates.front().token}, {1.0}};
  }
  if (config.top_k > 0) keep_likeliest(candidates, static_cast<size_t>(config.top_k));
  return distribution_of(std::move(candidates), config);
}

TokenDistribution distribution_of(std::vector<TokenValue> candidates, const SamplingConfig& config) {
  to_probabilities(candidates, config.temperature);
  keep_nucleus(candidates, config.top_p);
  keep_near_the_likeliest(candidates, config.min_p);

  double sum = 0;
  for (const TokenValue& c : candidates) sum += c.value;
  TokenDistribution distribution;
  distribution.tokens.reserve(candidates.size());
  distribution.probabilities.reserve(candidates.size());
  for (const TokenValue& c : candidates) {
    distribution.tokens.push_back(c.token);
    distribution.probabilities.push_back(c.value / sum);
  }
  return distribution;
}

int32_t draw(const TokenDistribution& distribution, double number) {
  double sum = 0;
  size_t last = 0;  // the last token with a share; drawn where rounding leaves the sum of all shares below `number`
  for (size_t i = 0; i < distribution.tokens.size(); ++i) {
    if (distribution.probabilities[i] <= 0) continue;
    sum += distribution.probabilities[i];
    last = i;
    if (number < sum) break;
  }
  return distribution.tokens[last];
}

TokenScores token_scores(std::span<const float> logits, int32_t token, int64_t likeliest, int64_t named_tokens) {
  std::vector<TokenValue> candidates = checked_candidates(logits);
  double largest = -std::numeric_limits<double>::infinity(), sum = 0;
  for (const TokenValue& c : candidates) largest = std::max(largest, c.value);
  for (const TokenValue& c : candidates) sum += std::exp(c.value - largest);
  const double log_sum = largest + std::log(sum);
  TokenScores scores{.log_probability = static_cast<double>(logits[static_cast<size_t>(token)]) - log_sum};
  candidates.resize(std::min(candidates.size(), static_cast<size_t>(named_tokens)));
  keep_likeliest(candidates, static_cast<size_t>(likeliest));
  std::sort(candidates.begin(), candidates.end(), better);
  for (const TokenValue& c : candidates) scores.likeliest.emplace_back(c.token, c.value - log_sum);
  return scores;
}

double random_number(uint64_t seed, uint64_t row, uint64_t step) {
  Random random(seed, row);
  random.set_position(2 * step);  // a number takes two words
  return random.uniform();
}

}  // namespace attune
