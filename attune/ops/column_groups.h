#pragma once
// Products with some columns for each row: rows in groups that take the same.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace attune {

/// Neighbouring rows [begin, end) with the same list.
struct ColumnGroup {
  int64_t begin, end;
  std::span<const int32_t> columns;
};

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

/// -inf beyond the group's columns; y [rows, width].
template <class T>
void fill_beyond(const ColumnGroup& group, T* y, int64_t width) {
  const auto used = static_cast<int64_t>(group.columns.size());
  for (int64_t r = group.begin; used < width && r < group.end; ++r)
    std::fill(y + r * width + used, y + (r + 1) * width, -std::numeric_limits<T>::infinity());
}

}  // namespace attune
