#pragma once

#include <cstdint>

namespace [[gnu::visibility("default")]] attune {

/// Identifies a mask. Whether element (row, column) is kept is a pure function of this, row and column: the backward
/// pass computes masks again instead of storing them, and they do not depend on the number of threads.
struct DropoutMask {
  double probability = 0;  // 0 switches dropout off
  uint64_t seed = 0;
  uint64_t step = 0;
  uint32_t op = 0;  // number of the Dropout module in its model

  bool active() const { return probability > 0; }
  double scale() const { return 1 / (1 - probability); }  // factor of the elements that are kept
  /// An element is kept when its random word is at least this.
  uint32_t threshold() const {
    constexpr double kMost = 0x1p32 - 1;
    const double share = probability * 0x1p32;
    return static_cast<uint32_t>(kMost < share ? kMost : share);
  }
  /// The key of the generator. Each step adds a large odd number, so that no two steps share their masks.
  uint64_t key() const { return seed + step * 0x9E3779B97F4A7C15u; }
  bool operator==(const DropoutMask&) const = default;
};

/// Whether element (row, column) is kept: the specification of the vectorised masks in the kernels. Columns are in
/// groups of 64. Column c of group g uses word c / 16 of Philox 4x32-10 with the counter {16 g + c % 16, low word of
/// row, op, high word of row}.
bool keep_mask(const DropoutMask& mask, int64_t row, int64_t column);

}  // namespace attune
