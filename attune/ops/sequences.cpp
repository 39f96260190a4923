#include "attune/ops/sequences.h"

#include <algorithm>
#include <limits>

#include "attune/base/fail.h"

namespace attune {

Sequences Sequences::from_offsets(std::vector<int32_t> offsets) {
  if (offsets.empty() || offsets.front() != 0) fail<ShapeError>("sequences: offsets have to begin with 0");
  for (size_t i = 1; i < offsets.size(); ++i) {
    if (offsets[i] < offsets[i - 1])
      fail<ShapeError>("sequences: offset {} is {}, below the one before it, {}", i, offsets[i], offsets[i - 1]);
  }
  Sequences sequences;
  sequences.offsets_ = std::move(offsets);
  return sequences;
}

Sequences Sequences::from_lengths(const std::vector<int32_t>& lengths) {
  std::vector<int32_t> offsets = {0};
  offsets.reserve(lengths.size() + 1);
  int64_t total = 0;
  for (const int32_t length : lengths) {
    total += length;
    if (length < 0 || total > std::numeric_limits<int32_t>::max())
      fail<ShapeError>("sequences: length {} at sequence {} is negative or makes more than 2^31 rows", length,
                       offsets.size() - 1);
    offsets.push_back(static_cast<int32_t>(total));
  }
  return from_offsets(std::move(offsets));
}

int64_t Sequences::max_length() const {
  int64_t longest = 0;
  for (int64_t i = 0; i < count(); ++i) longest = std::max(longest, length(i));
  return longest;
}

std::vector<int32_t> Sequences::positions() const {
  std::vector<int32_t> positions;
  positions.reserve(static_cast<size_t>(total()));
  for (int64_t i = 0; i < count(); ++i) {
    for (int64_t p = 0; p < length(i); ++p) positions.push_back(static_cast<int32_t>(p));
  }
  return positions;
}

}  // namespace attune
