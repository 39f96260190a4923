#pragma once

#include <algorithm>
#include <vector>

#include "attune/kernels/gemm/column_groups.h"

namespace attune {

/// Groups adjacent rows whose lists are the same (the same memory), in the order of the rows.
inline std::vector<ColumnGroup> group_columns(std::span<const std::span<const int32_t>> columns_of_rows) {
  std::vector<ColumnGroup> groups;
  for (const std::span<const int32_t> columns : columns_of_rows) {
    const int64_t row = groups.empty() ? 0 : groups.back().end;
    if (groups.empty() || columns.data() != groups.back().columns.data() ||
        columns.size() != groups.back().columns.size())
      groups.push_back({row, row, columns});
    ++groups.back().end;
  }
  return groups;
}

inline int64_t longest_list(std::span<const ColumnGroup> groups) {
  size_t longest = 0;
  for (const ColumnGroup& group : groups) longest = std::max(longest, group.columns.size());
  return static_cast<int64_t>(longest);
}

}  // namespace attune
