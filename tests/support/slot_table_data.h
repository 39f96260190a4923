#pragma once

#include <cstdint>
#include <vector>

#include "attune/cache/slot_table.h"

namespace attune {

/// A SlotTable with numbers of its own.
struct SlotTableData {
  std::vector<int32_t> slots, begin, end;
  SlotTable view() const { return {.slots = slots, .begin = begin, .end = end}; }
  operator SlotTable() const { return view(); }  // NOLINT: where a table is taken, this is one
};

}  // namespace attune
