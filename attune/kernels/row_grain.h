#pragma once

#include <algorithm>
#include <cstdint>

namespace attune {

/// Returns how many rows have about `elements` elements: a piece of work (10 to 50 microseconds of a pass over memory).
inline int64_t row_grain(int64_t columns, int64_t elements = int64_t{1} << 15) {
  return std::max<int64_t>(1, elements / std::max<int64_t>(1, columns));
}

}  // namespace attune
