#pragma once

#include <cstdint>
#include <vector>

namespace [[gnu::visibility("default")]] attune {

/// The slots that each query attends to: query r sees slots[begin[r]] ... slots[end[r] - 1]; what stands in no such
/// range is not looked at. Beams that share a past share its slots, so that reordering them moves no keys.
struct SlotTable {
  std::vector<int32_t> slots;
  std::vector<int32_t> begin;
  std::vector<int32_t> end;
};

}  // namespace attune
