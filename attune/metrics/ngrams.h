#pragma once
// Overlap of n-grams, which BLEU counts over words and chrF over characters.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <vector>

namespace attune {

/// Sorted, each n-gram as often as it occurs.
using Ngrams = std::vector<std::u32string_view>;

/// Every n-gram of `units` (words by number, or characters).
inline Ngrams sorted_ngrams(std::u32string_view units, std::size_t n) {
  Ngrams ngrams;
  if (units.size() < n) return ngrams;
  ngrams.reserve(units.size() - n + 1);
  for (std::size_t i = 0; i + n <= units.size(); ++i) ngrams.push_back(units.substr(i, n));
  std::sort(ngrams.begin(), ngrams.end());
  return ngrams;
}

/// How many n-grams two texts share. Each counts as often as it occurs in the text where it is rarer ("clipped").
inline int64_t shared_ngrams(const Ngrams& a, const Ngrams& b) {
  Ngrams shared;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(shared));
  return static_cast<int64_t>(shared.size());
}

/// The n-grams of one text or the other, each as often as it occurs in the text where it is more frequent.
inline Ngrams united_ngrams(const Ngrams& a, const Ngrams& b) {
  Ngrams united;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(united));
  return united;
}

}  // namespace attune
