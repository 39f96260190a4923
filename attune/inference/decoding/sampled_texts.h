#pragma once
// The texts of a sampling request.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "attune/inference/decoding/decoding_request.h"
#include "attune/inference/decoding/sampler.h"

namespace attune {

struct SampledText {
  uint64_t number;              // its row in random_number()
  std::vector<int32_t> tokens;  // prompt and continuation
  size_t window_begin = 0;      // the first token that the model still sees
  size_t generated = 0;         // how many of the tokens were generated
  FinishReason reason = FinishReason::length;

  std::span<const int32_t> window() const { return std::span(tokens).subspan(window_begin); }
};

/// What plain and speculative sampling have in common: the texts, and when they end.
class SampledTexts {
 public:
  /// Takes prompt, options and on_token of the request. Throws ConfigError for options that do not fit the model,
  /// DataError for a prompt that is too long.
  SampledTexts(const DecodingModel& model, DecodingRequest& request);

  const SamplingRequest& options() const { return options_; }
  size_t count() const { return texts_.size(); }
  SampledText& operator[](size_t i) { return texts_[i]; }
  const SampledText& operator[](size_t i) const { return texts_[i]; }

  /// The distribution of the token after `past`, of whose tokens the last `generated` are not the prompt's:
  /// token_distribution(), or the one token that the options force.
  TokenDistribution distribution(std::span<const float> logits, std::span<const int32_t> past, size_t generated) const;
  /// The token that has to follow; -1: there is none.
  int64_t forced(size_t generated) const;
  /// The tokens that may not follow, beside the options' never_drawn.
  std::vector<int32_t> more_excluded(std::span<const int32_t> past, size_t generated) const;
  /// Appends a token to text i; returns false when the text ends with it. When the context is full and `slide` is on,
  /// the second half of the window becomes the new window. `scores` are for on_token.
  bool accept(size_t i, int32_t token, const TokenScores* scores = nullptr);
  /// Writes the texts into `result`. Those in `alive` have not ended by themselves; `cut_short` is their reason.
  void finish(std::optional<FinishReason> cut_short, std::span<const size_t> alive, DecodingResult& result);
  /// The most tokens that the rows of all texts may have at once in the cache of a model with this context.
  int64_t most_tokens(int64_t context) const;

 private:
  void slide(SampledText& text) const;

  SamplingRequest options_;
  size_t prompt_tokens_;
  int64_t context_;
  std::function<bool(const TokenEvent&)> on_token_;
  std::vector<SampledText> texts_;
};

}  // namespace attune
