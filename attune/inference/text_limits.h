#pragma once

#include <cstddef>
#include <string_view>

#include "attune/base/fail.h"
#include "attune/text/text_file.h"

namespace attune {

inline constexpr size_t kMostTextBytes = size_t{1} << 20;  // a tokenizer takes hundreds of times as much memory

/// To be called before a text is encoded. Throws DataError naming `place` when it is too long or not UTF-8.
inline void check_text(std::string_view text, std::string_view place) {
  if (text.size() > kMostTextBytes)
    fail<DataError>("{}: has {} bytes, at most {} are accepted", place, text.size(), kMostTextBytes);
  check_utf8(text, place);
}

}  // namespace attune
