#pragma once

#include <cstdint>
#include <span>

namespace [[gnu::visibility("default")]] attune {

/// The slots that each query attends to: query r sees slots[begin[r]] ... slots[end[r] - 1]. Entries outside of these
/// ranges are not read. Hypotheses that share a past share its slots, so reordering them moves no keys. A view: it does
/// not own the numbers.
struct SlotTable {
  std::span<const int32_t> slots;
  std::span<const int32_t> begin;
  std::span<const int32_t> end;
};

}  // namespace attune
