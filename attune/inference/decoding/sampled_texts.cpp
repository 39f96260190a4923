#include "attune/inference/decoding/sampled_texts.h"

#include <algorithm>

#include "attune/base/check.h"
#include "attune/base/fail.h"
#include "attune/inference/decoding/phrases.h"

namespace attune {

SampledTexts::SampledTexts(const DecodingModel& model, DecodingRequest& request)
    : options_(std::move(std::get<SamplingRequest>(request.search))),
      prompt_tokens_(request.prompt.size()),
      context_(model.longest_sequence()),
      on_token_(std::move(request.on_token)) {
  options_.config.validate();
  options_.config.max_tokens = options_.config.longest_continuation(static_cast<int64_t>(prompt_tokens_));
  check_range<int64_t>("samples", options_.samples, 1, 1 << 16);
  check_range<int64_t>("likeliest", options_.likeliest, -1, model.vocab());
  if (options_.draft != nullptr && options_.likeliest >= 0)
    fail<ConfigError>("likeliest = {}: not with a draft", options_.likeliest);
  if (options_.config.repetition_penalty != 1 && model.gives_log_probabilities())
    fail<ConfigError>("repetition_penalty = {}: an ensemble has no logits that it could change",
                      options_.config.repetition_penalty);
  std::vector<int32_t>& never_drawn = options_.never_drawn;
  const std::vector<int64_t>& suppressed = options_.config.suppressed_tokens;
  never_drawn.insert(never_drawn.end(), suppressed.begin(), suppressed.end());
  for (const int32_t id : never_drawn)
    if (id < 0 || id >= model.vocab())
      fail<ConfigError>("suppressed_tokens: {} is outside the vocabulary of {}", id, model.vocab());
  for (const std::vector<int64_t>& phrase : options_.config.suppressed_phrases)
    if (const int64_t id = std::ranges::max(phrase); id >= model.vocab())
      fail<ConfigError>("suppressed_phrases: {} is outside the vocabulary of {}", id, model.vocab());
  if (static_cast<int64_t>(prompt_tokens_) > context_ && !options_.config.slide)
    fail<DataError>("prompt: has {} tokens, the model reads at most {}", prompt_tokens_, context_);
  for (const int64_t id : {options_.config.forced_first_token, options_.config.forced_last_token})
    if (id >= model.vocab())
      fail<ConfigError>("forced_first_token and forced_last_token: {} is outside the vocabulary of {}", id,
                        model.vocab());
  for (int64_t i = 0; i < options_.samples; ++i) {
    texts_.push_back({.number = options_.first_sample + static_cast<uint64_t>(i), .tokens = request.prompt});
    slide(texts_.back());
  }
}

void SampledTexts::slide(SampledText& text) const {
  if (static_cast<int64_t>(text.window().size()) > context_)
    text.window_begin = text.tokens.size() - static_cast<size_t>(std::max<int64_t>(1, context_ / 2));
}

TokenDistribution SampledTexts::distribution(std::span<const float> logits, std::span<const int32_t> past,
                                             size_t generated) const {
  if (const int64_t token = forced(generated); token >= 0)
    return {.tokens = {static_cast<int32_t>(token)}, .probabilities = {1.0}};
  std::vector<int32_t> excluded = options_.never_drawn;
  const std::vector<int32_t> more = more_excluded(past, generated);
  excluded.insert(excluded.end(), more.begin(), more.end());
  return token_distribution(logits, past, options_.config, excluded);
}

int64_t SampledTexts::forced(size_t generated) const {
  const SamplingConfig& config = options_.config;
  if (config.forced_last_token >= 0 && static_cast<int64_t>(generated) + 1 == config.max_tokens)
    return config.forced_last_token;
  return generated == 0 && prompt_tokens_ == 1 ? config.forced_first_token : -1;
}

std::vector<int32_t> SampledTexts::more_excluded(std::span<const int32_t> past, size_t generated) const {
  const SamplingConfig& config = options_.config;
  std::vector<int32_t> tokens;
  const bool first_is_forced = config.forced_first_token >= 0 && prompt_tokens_ == 1;
  if (generated == (first_is_forced ? 1 : 0))
    tokens.insert(tokens.end(), config.suppressed_at_begin.begin(), config.suppressed_at_begin.end());
  if (static_cast<int64_t>(generated) < config.min_tokens)
    tokens.insert(tokens.end(), options_.eos.begin(), options_.eos.end());
  append_banned(config.suppressed_phrases, past, tokens);
  append_repeats(config.no_repeat_ngram_size, past, tokens);
  return tokens;
}

bool SampledTexts::accept(size_t i, int32_t token, const TokenScores* scores) {
  SampledText& text = texts_[i];
  text.tokens.push_back(token);
  ++text.generated;
  std::optional<FinishReason> end;
  if (options_.ends_with(token)) {
    end = FinishReason::eos;
  } else if (static_cast<int64_t>(text.generated) == options_.config.max_tokens) {
    end = FinishReason::length;
  } else if (static_cast<int64_t>(text.window().size()) > context_ && !options_.config.slide) {
    end = FinishReason::context;
  }
  const bool goes_on =
      !on_token_ || on_token_({.sample = static_cast<int64_t>(i), .token = token, .end = end, .scores = scores});
  if (!goes_on && end != FinishReason::eos) end = FinishReason::stop;
  if (end) {
    text.reason = *end;
    return false;
  }
  slide(text);
  return true;
}

void SampledTexts::finish(std::optional<FinishReason> cut_short, std::span<const size_t> alive,
                          DecodingResult& result) {
  for (const size_t i : alive)
    if (cut_short) texts_[i].reason = *cut_short;
  for (const SampledText& text : texts_) {
    const auto begin = text.tokens.end() - static_cast<std::ptrdiff_t>(text.generated);
    result.samples.push_back({.tokens = {begin, text.tokens.end()}, .finish_reason = text.reason});
  }
}

int64_t SampledTexts::most_tokens(int64_t context) const {
  const auto prompt = static_cast<int64_t>(prompt_tokens_);
  const int64_t samples = options_.samples, more = options_.config.max_tokens - 1;  // the last one is not read
  const bool slides = options_.config.slide && prompt + more > context;
  if (slides) return samples * context;
  return std::min(prompt, context) + samples * std::clamp<int64_t>(context - prompt, 0, more);
}

}  // namespace attune
