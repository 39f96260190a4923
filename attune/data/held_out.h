#pragma once

#include <cmath>
#include <cstdint>

namespace attune {

/// Whether text `index`, from 0, is one of those that are held out for validation: a share of `fraction`, from 0 to 1,
/// evenly spread, since a file may be sorted.
inline bool is_held_out(int64_t index, double fraction) {
  const auto place = static_cast<double>(index);
  return std::floor((place + 1) * fraction) > std::floor(place * fraction);
}

}  // namespace attune
