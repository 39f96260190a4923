#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace attune {

/// The first `bytes` bytes of a text, for messages; fewer where that would cut a character of UTF-8 in two.
inline std::string cut_text(std::string_view text, size_t bytes) {
  if (text.size() > bytes)
    while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xC0) == 0x80) --bytes;
  return std::string(text.substr(0, bytes));
}

}  // namespace attune
