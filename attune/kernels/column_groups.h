#pragma once
// Products with some columns for each row: rows in groups that take the same.

#include <cstdint>
#include <span>

namespace attune {

/// Neighbouring rows [begin, end) with the same columns, as the host describes them.
struct ColumnGroup {
  int64_t begin, end;
  std::span<const int32_t> columns;
};

}  // namespace attune
