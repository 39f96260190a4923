#pragma once

#include <string_view>

namespace attune {

/// Whether `text` matches `pattern`, in which "*" stands for any text, also for none.
inline bool matches_glob(std::string_view pattern, std::string_view text) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == text;
  if (!text.starts_with(pattern.substr(0, star))) return false;
  for (size_t at = star; at <= text.size(); ++at)
    if (matches_glob(pattern.substr(star + 1), text.substr(at))) return true;
  return false;
}

}  // namespace attune
