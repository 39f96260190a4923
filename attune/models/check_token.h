#pragma once
// Checks of token ids in configurations.

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "attune/base/check.h"
#include "attune/base/fail.h"

namespace attune {

/// Throws ConfigError, which names the field, unless least <= token < 2^31.
inline void check_token(const char* field, int64_t token, int64_t least = 0) {
  check_range<int64_t>(field, token, least, std::numeric_limits<int32_t>::max());
}

/// The same for each token of a list.
inline void check_tokens(const char* field, std::span<const int64_t> tokens) {
  for (const int64_t token : tokens) check_token(field, token);
}

/// The same for lists of tokens, none of which may be empty. Each step of a search looks at all of them, so that there
/// are at most 65,536, with at most 262,144 tokens.
inline void check_token_lists(const char* field, std::span<const std::vector<int64_t>> lists) {
  constexpr size_t kMost = 1 << 16, kMostTokens = 1 << 18;
  if (lists.size() > kMost)
    fail<ConfigError>("{}: {} lists of tokens, at most {} are accepted", field, lists.size(), kMost);
  size_t all = 0;
  for (const std::vector<int64_t>& tokens : lists) {
    if (tokens.empty()) fail<ConfigError>("{}: a list without tokens", field);
    check_tokens(field, tokens);
    all += tokens.size();
  }
  if (all > kMostTokens) fail<ConfigError>("{}: {} tokens in all, at most {} are accepted", field, all, kMostTokens);
}

}  // namespace attune
