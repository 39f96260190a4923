#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "attune/text/unicode.h"

namespace attune {

/// The numbers that stand for words while a sentence is scored.
using WordNumbers = std::unordered_map<std::string, char32_t>;

/// The words of a text, separated by white space, as numbers: equal numbers for equal words.
inline std::u32string number_words(std::string_view text, WordNumbers& numbers) {
  std::u32string words;
  for (const auto word : split_words(text))
    words.push_back(numbers.try_emplace(std::string(word), static_cast<char32_t>(numbers.size())).first->second);
  return words;
}

}  // namespace attune
