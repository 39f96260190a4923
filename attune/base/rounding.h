#pragma once

#include <cstddef>
#include <cstdint>

namespace [[gnu::visibility("default")]] attune {

/// n / by, rounded up; n >= 0, by > 0.
constexpr int64_t divide_up(int64_t n, int64_t by) {
  return (n + by - 1) / by;
}

/// The next multiple of `to` that is not below n; n >= 0, to > 0.
constexpr int64_t round_up(int64_t n, int64_t to) {
  return divide_up(n, to) * to;
}
constexpr size_t round_up(size_t n, size_t to) {
  return (n + to - 1) / to * to;
}

}  // namespace attune
