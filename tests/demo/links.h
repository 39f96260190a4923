#pragma once
// Pairs of the grammar as their words.

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "attune/demo/sentences.h"

namespace attune {

inline double words(std::string_view text) {
  return 1.0 + static_cast<double>(std::ranges::count(text, ' '));
}

/// The linked words as text, "teacher=Lehrer".
inline std::vector<std::string> links_of(const SentencePair& pair) {
  const auto words = [](const std::string& text) {
    std::vector<std::string> all(1);
    for (const char c : text) {
      if (c == ' ') {
        all.emplace_back();
      } else {
        all.back() += c;
      }
    }
    return all;
  };
  const std::vector<std::string> source = words(pair.source), target = words(pair.target);
  std::vector<std::string> links;
  for (const auto& [s, t] : pair.alignment)
    links.push_back(source.at(static_cast<size_t>(s)) + "=" + target.at(static_cast<size_t>(t)));
  return links;
}

using Links = std::vector<std::string>;

}  // namespace attune
