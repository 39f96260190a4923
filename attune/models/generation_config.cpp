#include "attune/models/generation_config.h"

#include <algorithm>
#include <cmath>

#include "attune/base/check.h"
#include "attune/base/fail.h"
#include "attune/models/check_token.h"

namespace attune {
namespace {

void check_work(int64_t beam_size, int64_t max_length) {
  if (beam_size * max_length > GenerationConfig::kMostWork)
    fail<ConfigError>("beam_size = {} and max_length = {}: need a product of at most {}", beam_size, max_length,
                      GenerationConfig::kMostWork);
}

}  // namespace

void GenerationConfig::validate() const {
  check_range<int64_t>("beam_size", beam_size, 1, kMostBeamSize);
  check_range<double>("length_penalty", length_penalty, 0, 10);
  check_range<int64_t>("max_length", max_length, 1, kMostLength);
  check_range<double>("max_length_ratio", max_length_ratio, 0, 100);
  check_range<int64_t>("max_length_offset", max_length_offset, 0, kMostLength);
  check_work(beam_size, max_length);
  check_range<double>("coverage_penalty", coverage_penalty, 0, 10);
  if (!(patience > 0 && patience <= 100))
    fail<ConfigError>("patience = {}: needs a number above 0, at most 100", patience);
  check_range<int64_t>("beam_groups", beam_groups, 1, beam_size);
  if (beam_size % beam_groups != 0)
    fail<ConfigError>("beam_groups = {}: has to divide beam_size = {}", beam_groups, beam_size);
  check_range<double>("diversity_penalty", diversity_penalty, 0, 100);
  check_range<int64_t>("min_length", min_length, 0, max_length);
  check_range<int64_t>("no_repeat_ngram_size", no_repeat_ngram_size, 0, 64);
  if (!(repetition_penalty > 0 && repetition_penalty <= 100))
    fail<ConfigError>("repetition_penalty = {}: needs a number above 0, at most 100", repetition_penalty);
  if (renormalize_logits && beam_size > 1 && penalize_log_probabilities && repetition_penalty != 1)
    fail<ConfigError>("renormalize_logits = true: needs repetition_penalty = 1 or penalize_log_probabilities = false");
  check_token("start_token", start_token, -1);
  check_token("forced_first_token", forced_first_token, -1);
  check_token("forced_last_token", forced_last_token, -1);
  check_tokens("eos_tokens", eos_tokens);
  check_tokens("suppressed_tokens", suppressed_tokens);
  check_tokens("suppressed_at_begin", suppressed_at_begin);
  check_token_lists("suppressed_phrases", suppressed_phrases);
}

void GenerationConfig::limit_length(int64_t most) {
  max_length = most;
  min_length = std::clamp<int64_t>(min_length, 0, std::max<int64_t>(most - 1, 0));
}

void GenerationConfig::resize_beam(int64_t size) {
  beam_size = size;
  if (beam_groups > 1 && beam_size % beam_groups != 0) beam_groups = 1;
}

int64_t GenerationConfig::longest_output(int64_t source_tokens) const {
  if (max_length_ratio <= 0) return max_length;
  const double limit = max_length_ratio * static_cast<double>(source_tokens) + static_cast<double>(max_length_offset);
  return std::max(std::min(min_length + 1, max_length),
                  static_cast<int64_t>(std::min(limit, static_cast<double>(max_length))));
}

double GenerationConfig::length_divisor(int64_t tokens) const {
  const auto length = static_cast<double>(tokens);
  return std::pow(length_normalization == LengthNormalization::wu ? (5 + length) / 6 : length, length_penalty);
}

}  // namespace attune
