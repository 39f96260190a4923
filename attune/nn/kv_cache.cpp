#include "attune/nn/kv_cache.h"

#include <numeric>

namespace attune {

int64_t KvCache::bytes() const {
  int64_t sum = 0;
  for (const Layer& layer : layers) sum += layer.self.bytes() + layer.cross.bytes();
  return sum;
}

Tensor KvCache::positions() const {
  std::vector<int32_t> next;
  for (int64_t r = 0; r < rows(); ++r) next.push_back(position(r));
  return Tensor::from({rows()}, next);
}

void KvCache::select(const std::vector<int32_t>& parents) {
  for (const int32_t parent : parents) {
    if (parent < 0 || parent >= rows()) fail<ShapeError>("cache: row {} of {}", parent, rows());
  }
  SlotTable self;
  SlotTable cross{.slots = std::move(cross_table.slots), .begin = {}, .end = {}};
  std::vector<int32_t> sources;
  for (const int32_t parent : parents) {
    const auto p = static_cast<size_t>(parent);
    self.begin.push_back(static_cast<int32_t>(self.slots.size()));
    self.slots.insert(self.slots.end(), self_table.slots.begin() + self_table.begin[p],
                      self_table.slots.begin() + self_table.end[p]);
    self.end.push_back(static_cast<int32_t>(self.slots.size()));
    cross.begin.push_back(cross_table.begin[p]);
    cross.end.push_back(cross_table.end[p]);
    sources.push_back(row_of_source[p]);
  }
  self_table = std::move(self);
  cross_table = std::move(cross);
  row_of_source = std::move(sources);
}

void KvCache::extend(int64_t first_slot) {
  SlotTable longer;
  longer.slots.reserve(self_table.slots.size() + self_table.begin.size());
  for (size_t r = 0; r < self_table.begin.size(); ++r) {
    longer.begin.push_back(static_cast<int32_t>(longer.slots.size()));
    longer.slots.insert(longer.slots.end(), self_table.slots.begin() + self_table.begin[r],
                        self_table.slots.begin() + self_table.end[r]);
    longer.slots.push_back(static_cast<int32_t>(first_slot + static_cast<int64_t>(r)));
    longer.end.push_back(static_cast<int32_t>(longer.slots.size()));
  }
  self_table = std::move(longer);
}

}  // namespace attune
