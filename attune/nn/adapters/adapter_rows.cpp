#include "attune/nn/adapters/adapter_rows.h"

#include <algorithm>
#include <numeric>

namespace attune {

AdapterRows::AdapterRows(std::vector<int32_t> adapters) : adapters_(std::move(adapters)) {
  std::vector<int32_t> sorted(adapters_.size()), places(adapters_.size(), -1);
  std::iota(sorted.begin(), sorted.end(), 0);
  const auto of = [&](int32_t row) { return adapters_[static_cast<size_t>(row)]; };
  std::erase_if(sorted, [&](int32_t row) { return of(row) == kNoAdapter; });
  std::ranges::stable_sort(sorted, {}, of);
  for (size_t i = 0; i < sorted.size(); ++i) {
    const int32_t adapter = of(sorted[i]);
    const auto at = static_cast<int64_t>(i);
    places[static_cast<size_t>(sorted[i])] = static_cast<int32_t>(i);
    if (segments_.empty() || segments_.back().adapter != adapter)
      segments_.push_back({.adapter = adapter, .begin = at, .end = at});
    segments_.back().end = at + 1;
  }
  sorted_ = Indices(std::move(sorted));
  places_ = Indices(std::move(places));
}

}  // namespace attune
