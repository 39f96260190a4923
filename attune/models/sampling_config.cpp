#include "attune/models/sampling_config.h"

#include "attune/base/check.h"
#include "attune/base/fail.h"
#include "attune/models/check_token.h"

namespace attune {
void SamplingConfig::validate() const {
  if (!(repetition_penalty > 0 && repetition_penalty <= 100))
    fail<ConfigError>("repetition_penalty = {}: needs a number above 0, at most 100", repetition_penalty);
  check_range<double>("temperature", temperature, 0, 100);
  check_range<int64_t>("top_k", top_k, 0, 1 << 24);
  if (!(top_p > 0 && top_p <= 1)) fail<ConfigError>("top_p = {}: needs a number above 0, at most 1", top_p);
  check_range<double>("min_p", min_p, 0, 1);
  check_range<int64_t>("max_length", max_length, 0, 1 << 24);
  check_range<int64_t>("max_tokens", max_tokens, max_length > 0 ? 0 : 1, 1 << 24);
  check_range<int64_t>("min_tokens", min_tokens, 0, 1 << 24);
  check_range<int64_t>("no_repeat_ngram_size", no_repeat_ngram_size, 0, 64);
  check_tokens("eos_tokens", eos_tokens);
  check_tokens("suppressed_tokens", suppressed_tokens);
  check_tokens("suppressed_at_begin", suppressed_at_begin);
  check_token_lists("suppressed_phrases", suppressed_phrases);
  check_token("forced_first_token", forced_first_token, -1);
  check_token("forced_last_token", forced_last_token, -1);
  check_range<uint64_t>("seed", seed, 0, (uint64_t{1} << 63) - 1);
}

}  // namespace attune
