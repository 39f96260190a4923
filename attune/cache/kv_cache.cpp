#include "attune/cache/kv_cache.h"

namespace attune {

int64_t KvCache::bytes() const {
  int64_t sum = 0;
  for (const Layer& layer : layers) sum += layer.self.bytes() + layer.cross.bytes();
  return sum;
}

int64_t KvCache::bytes_of(int64_t past_tokens, int64_t source_tokens) const {
  int64_t sum = 0;
  for (const Layer& layer : layers)
    sum += past_tokens * layer.self.token_bytes() + source_tokens * layer.cross.token_bytes();
  return sum;
}

Indices KvCache::positions(std::span<const int32_t> counts) const {
  std::vector<int32_t> next;
  next.reserve(counts.size());
  for (size_t r = 0; r < counts.size(); ++r) {
    for (int32_t i = 0; i < counts[r]; ++i) next.push_back(position(static_cast<int64_t>(r)) + i);
  }
  return next;
}

void KvCache::add_rows(int64_t count) {
  past.add_rows(count);
  source.add_rows(count);
}

void KvCache::select(std::span<const int32_t> parents) {
  past.select(parents);
  source.select(parents);
}

}  // namespace attune
