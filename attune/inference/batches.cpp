#include "attune/inference/batches.h"

#include <algorithm>
#include <numeric>

namespace attune {

std::vector<std::vector<size_t>> batches_by_length(const TokenSequences& sequences, int64_t most_sequences,
                                                   int64_t most_tokens) {
  std::vector<size_t> order(sequences.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::erase_if(order, [&](size_t i) { return sequences[i].empty(); });
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return sequences[a].size() > sequences[b].size(); });
  std::vector<std::vector<size_t>> batches;
  int64_t tokens = 0;
  for (const size_t i : order) {
    const auto length = static_cast<int64_t>(sequences[i].size());
    if (batches.empty() || static_cast<int64_t>(batches.back().size()) == most_sequences ||
        tokens + length > most_tokens) {
      batches.emplace_back();
      tokens = 0;
    }
    batches.back().push_back(i);
    tokens += length;
  }
  return batches;
}

PackedTokens pack_batch(const TokenSequences& sequences, const std::vector<size_t>& batch) {
  std::vector<int32_t> packed, offsets = {0};
  for (const size_t i : batch) {
    packed.insert(packed.end(), sequences[i].begin(), sequences[i].end());
    offsets.push_back(static_cast<int32_t>(packed.size()));
  }
  return pack_tokens(packed, offsets);
}

}  // namespace attune
