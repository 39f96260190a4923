#pragma once

#include <cstdint>
#include <span>

namespace [[gnu::visibility("default")]] attune {

/// The slots that each query attends to: query r sees slots[begin[r]] ... slots[end[r] - 1]; what stands in no such
/// range is not looked at. Beams that share a past share its slots, so that reordering them moves no keys. A view: the
/// numbers belong to whoever made the table.
struct SlotTable {
  std::span<const int32_t> slots;
  std::span<const int32_t> begin;
  std::span<const int32_t> end;
};

}  // namespace attune
