#include "attune/cache/kv_cache.h"

namespace attune {

int64_t KvCache::bytes() const {
  int64_t sum = 0;
  for (const Layer& layer : layers) sum += layer.self.bytes() + layer.cross.bytes();
  return sum;
}

Indices KvCache::positions() const {
  std::vector<int32_t> next;
  for (int64_t r = 0; r < rows(); ++r) next.push_back(position(r));
  return next;
}

void KvCache::select(const std::vector<int32_t>& parents) {
  past.select(parents);
  source.select(parents);
}

}  // namespace attune
