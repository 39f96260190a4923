#include "attune/kernels/rows_by_id.h"

#include <numeric>

namespace attune {

RowsById::RowsById(std::span<const int32_t> ids, int64_t places) : starts(static_cast<size_t>(places) + 1) {
  for (const int32_t id : ids)
    if (id >= 0) ++starts[static_cast<size_t>(id) + 1];
  std::partial_sum(starts.begin(), starts.end(), starts.begin());
  positions.resize(static_cast<size_t>(starts.back()));
  std::vector<int32_t> next(starts.begin(), starts.end());
  for (size_t i = 0; i < ids.size(); ++i)
    if (ids[i] >= 0) positions[static_cast<size_t>(next[static_cast<size_t>(ids[i])]++)] = static_cast<int32_t>(i);
}

}  // namespace attune
