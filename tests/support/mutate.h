#pragma once
// Mutations for fuzzing: what goes wrong with files, and what somebody would try on purpose.

#include <string>
#include <string_view>
#include <vector>

#include "attune/base/random.h"

namespace attune {

/// One to four edits: bits flipped, bytes replaced, pieces removed, doubled or moved, text from `dictionary` put in.
inline std::string mutate(std::string text, const std::vector<std::string>& dictionary, Random& random) {
  const auto place = [&] { return static_cast<size_t>(random.below(text.size() + 1)); };
  // One number at a time is drawn: the order of two arguments is the compiler's.
  const auto piece = [&] {
    const size_t from = place();
    return text.substr(from, static_cast<size_t>(random.below(40)));
  };
  for (uint64_t edits = 1 + random.below(4); edits > 0; --edits) {
    const uint64_t edit = random.below(6);
    const size_t at = place();
    switch (edit) {
      case 0:
        if (at < text.size()) text[at] ^= static_cast<char>(1u << random.below(8));
        break;
      case 1:
        if (at < text.size()) text[at] = static_cast<char>(random.below(256));
        break;
      case 2:
        text.erase(at, random.below(20));
        break;
      case 3:
        text.insert(at, piece());
        break;
      case 4:
        text.resize(at);
        break;
      default:
        if (!dictionary.empty()) text.insert(at, dictionary[random.below(dictionary.size())]);
    }
  }
  return text;
}

}  // namespace attune
