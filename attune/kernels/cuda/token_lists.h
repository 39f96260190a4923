#pragma once
// Lists of tokens of several rows, one after the other in a table that goes to the device.

#include <cstdint>
#include <span>
#include <vector>

namespace attune::cuda {

struct TokenList {
  int64_t begin;  // in the table
  int32_t count;
};

/// Appends a list to the table and returns its place there.
inline TokenList append(std::vector<int32_t>& table, std::span<const int32_t> list) {
  const auto begin = static_cast<int64_t>(table.size());
  table.insert(table.end(), list.begin(), list.end());
  return {begin, static_cast<int32_t>(list.size())};
}

/// Whether a and b are the same list in memory. Neighbouring rows often share a list, which the table then needs only
/// once.
inline bool same_memory(std::span<const int32_t> a, std::span<const int32_t> b) {
  return a.data() == b.data() && a.size() == b.size();
}

}  // namespace attune::cuda
