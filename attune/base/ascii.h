#pragma once
// Letters of ASCII, the same in every locale; other bytes stay as they are.

#include <string>
#include <string_view>

namespace attune {

constexpr char ascii_lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

inline std::string ascii_lowercase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = ascii_lower(c);
  return lower;
}

}  // namespace attune
