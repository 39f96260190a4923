#include "attune/data/batch_part.h"

#include <algorithm>

namespace attune {

// An example belongs to the part in which its middle lies.
std::pair<size_t, size_t> examples_of_part(std::span<const int64_t> tokens, const BatchPart& part) {
  const auto cost = [](int64_t n) { return static_cast<double>(std::max<int64_t>(n, 1)); };
  double total = 0, before = 0;
  for (const int64_t n : tokens) total += cost(n);
  std::pair<size_t, size_t> range = {tokens.size(), tokens.size()};
  for (size_t i = 0; i < tokens.size(); ++i) {
    const double middle = before + cost(tokens[i]) / 2;  // halves are exact
    const auto of = static_cast<int64_t>(middle / total * static_cast<double>(part.ranks));
    if (of >= part.rank) range.first = std::min(range.first, i);
    if (of > part.rank) {
      range.second = i;
      break;
    }
    before += cost(tokens[i]);
  }
  return range;
}

}  // namespace attune
