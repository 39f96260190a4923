#include "attune/nn/attention/query_groups.h"

#include <algorithm>

namespace attune {

std::vector<QueryGroup> query_groups(const SlotTable& table) {
  std::vector<QueryGroup> groups;
  for (size_t begin = 0; begin < table.begin.size();) {
    size_t end = begin + 1;
    while (end < table.begin.size() && table.begin[end] == table.begin[begin]) ++end;
    groups.push_back({static_cast<int64_t>(begin), static_cast<int64_t>(end)});
    begin = end;
  }
  return groups;
}

SlotTable queries_of(const SlotTable& table, int64_t begin, int64_t end) {
  const auto first = static_cast<size_t>(begin), count = static_cast<size_t>(end - begin);
  return {.slots = table.slots, .begin = table.begin.subspan(first, count), .end = table.end.subspan(first, count)};
}

std::span<const int32_t> slots_of(const SlotTable& table, const QueryGroup& group) {
  const auto last = static_cast<size_t>(group.end - 1);
  return table.slots.subspan(static_cast<size_t>(table.begin[last]),
                             static_cast<size_t>(table.end[last] - table.begin[last]));
}

bool is_causal(const SlotTable& table, const QueryGroup& group) {
  const auto first = static_cast<size_t>(group.begin), end = static_cast<size_t>(group.end);
  for (size_t r = first + 1; r < end; ++r)
    if (table.end[r] != table.end[r - 1] + 1) return false;
  return table.end[first] > table.begin[first];
}

bool sees_the_same(const SlotTable& table, const QueryGroup& group) {
  const auto ends = table.end.subspan(static_cast<size_t>(group.begin), static_cast<size_t>(group.size()));
  return ends.front() > table.begin[static_cast<size_t>(group.begin)] &&
         std::all_of(ends.begin(), ends.end(), [&](int32_t end) { return end == ends.front(); });
}

std::vector<QueryGroup> prompt_groups(const SlotTable& table) {
  std::vector<QueryGroup> prompts;
  if (static_cast<int64_t>(table.begin.size()) <= kQueriesByRow) return prompts;
  for (const QueryGroup& group : query_groups(table))
    if (group.size() > kQueriesByRow && is_causal(table, group)) prompts.push_back(group);
  return prompts;
}

}  // namespace attune
