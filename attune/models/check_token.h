#pragma once
// Checks of token ids in configurations.

#include <cstdint>
#include <limits>
#include <span>

#include "attune/base/check.h"

namespace attune {

/// Throws ConfigError, which names the field, unless least <= token < 2^31.
inline void check_token(const char* field, int64_t token, int64_t least = 0) {
  check_range<int64_t>(field, token, least, std::numeric_limits<int32_t>::max());
}

/// The same for each token of a list.
inline void check_tokens(const char* field, std::span<const int64_t> tokens) {
  for (const int64_t token : tokens) check_token(field, token);
}

}  // namespace attune
