#pragma once
// For products that compute only some columns of each row: groups of rows that need the same columns.

#include <cstdint>
#include <span>

namespace attune {

/// The adjacent rows [begin, end) need the same columns. Both are in host memory.
struct ColumnGroup {
  int64_t begin, end;
  std::span<const int32_t> columns;
};

}  // namespace attune
