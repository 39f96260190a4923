#pragma once
// Mutations for fuzzing: what goes wrong with files, and what somebody would try on purpose.

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "attune/base/random.h"

namespace attune {

/// One to four edits: bits flipped, bytes replaced, pieces removed, doubled or moved, text from `dictionary` put in.
inline std::string mutate(std::string text, const std::vector<std::string>& dictionary, Random& random) {
  const auto place = [&] { return static_cast<size_t>(random.below(text.size() + 1)); };
  const auto piece = [&] { return text.substr(place(), static_cast<size_t>(random.below(40))); };
  for (uint64_t edits = 1 + random.below(4); edits > 0; --edits) {
    switch (random.below(6)) {
      case 0:
        if (!text.empty()) text[random.below(text.size())] ^= static_cast<char>(1u << random.below(8));
        break;
      case 1:
        if (!text.empty()) text[random.below(text.size())] = static_cast<char>(random.below(256));
        break;
      case 2:
        text.erase(std::min(place(), text.size()), random.below(20));
        break;
      case 3:
        text.insert(place(), piece());
        break;
      case 4:
        text.resize(place());
        break;
      default:
        if (!dictionary.empty()) text.insert(place(), dictionary[random.below(dictionary.size())]);
    }
  }
  return text;
}

}  // namespace attune
