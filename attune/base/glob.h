#pragma once

#include <string_view>

namespace attune {

/// Whether `text` matches `pattern`, in which "*" stands for any text, also for none. Takes at most as many steps as
/// the product of the two lengths.
inline bool matches_glob(std::string_view pattern, std::string_view text) {
  constexpr size_t kNone = std::string_view::npos;
  size_t p = 0, t = 0, last_star = kNone, tried = 0;  // tried: where the text after the last star is tried
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      last_star = p++;
      tried = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (last_star != kNone) {  // earlier stars need not take more: the last one can take it instead
      p = last_star + 1;
      t = ++tried;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == kNone;
}

}  // namespace attune
