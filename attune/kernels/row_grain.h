#pragma once

#include <algorithm>
#include <cstdint>

namespace attune {

/// How many rows make a piece of work of about `elements` elements (10 to 50 microseconds for a pass over memory).
inline int64_t row_grain(int64_t columns, int64_t elements = int64_t{1} << 15) {
  return std::max<int64_t>(1, elements / std::max<int64_t>(1, columns));
}

}  // namespace attune
