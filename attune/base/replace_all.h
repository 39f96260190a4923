#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace attune {

/// Puts `to` in the place of each `from`, from left to right. Does nothing if `from` is empty.
inline void replace_all(std::string& text, std::string_view from, std::string_view to) {
  size_t at = from.empty() ? std::string::npos : text.find(from);
  if (at == std::string::npos) return;
  std::string result;
  size_t done = 0;
  for (; at != std::string::npos; at = text.find(from, done)) {
    result.append(text, done, at - done).append(to);
    done = at + from.size();
  }
  text = result.append(text, done);
}

}  // namespace attune
