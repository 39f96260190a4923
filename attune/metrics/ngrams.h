#pragma once
// Overlap of n-grams, which BLEU counts over words and chrF over characters.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace attune {

/// Every n-gram of `units` (words by number, or characters), sorted, repeated as often as it occurs.
inline std::vector<std::u32string_view> sorted_ngrams(std::u32string_view units, std::size_t n) {
  std::vector<std::u32string_view> ngrams;
  if (units.size() < n) return ngrams;
  ngrams.reserve(units.size() - n + 1);
  for (std::size_t i = 0; i + n <= units.size(); ++i) ngrams.push_back(units.substr(i, n));
  std::sort(ngrams.begin(), ngrams.end());
  return ngrams;
}

/// How many n-grams two texts share. Each counts as often as it occurs in the text where it is rarer ("clipped").
inline int64_t shared_ngrams(std::u32string_view a, std::u32string_view b, std::size_t n) {
  const auto left = sorted_ngrams(a, n);
  const auto right = sorted_ngrams(b, n);
  int64_t shared = 0;
  for (auto l = left.begin(), r = right.begin(); l != left.end() && r != right.end();) {
    const int order = l->compare(*r);
    shared += order == 0;
    if (order <= 0) ++l;
    if (order >= 0) ++r;
  }
  return shared;
}

/// How many n-grams a text of `length` units has.
inline int64_t count_ngrams(std::size_t length, std::size_t n) {
  return length < n ? 0 : static_cast<int64_t>(length - n + 1);
}

}  // namespace attune
