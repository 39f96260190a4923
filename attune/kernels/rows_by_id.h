#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace attune {

/// Where each id stands among many: id v is at positions[starts[v]], ..., positions[starts[v + 1] - 1], in rising
/// order. With it, sums over the rows of an id have one order, whatever the number of threads.
struct RowsById {
  std::vector<int32_t> starts;     // [places + 1]
  std::vector<int32_t> positions;  // [ids that are not negative]

  /// Sorts ids below `places` by counting; negative ones are left out.
  RowsById(std::span<const int32_t> ids, int64_t places);
};

}  // namespace attune
