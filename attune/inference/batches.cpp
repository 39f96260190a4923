#include "attune/inference/batches.h"

#include <algorithm>
#include <numeric>

#include "attune/base/fail.h"

namespace attune {

std::vector<std::vector<size_t>> batches_by_length(std::span<const Encoding> texts, int64_t most_texts,
                                                   int64_t most_tokens) {
  std::vector<size_t> order(texts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::erase_if(order, [&](size_t i) { return texts[i].ids.empty(); });
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return texts[a].ids.size() > texts[b].ids.size(); });
  std::vector<std::vector<size_t>> batches;
  int64_t tokens = 0;
  for (const size_t i : order) {
    const auto length = static_cast<int64_t>(texts[i].ids.size());
    if (batches.empty() || static_cast<int64_t>(batches.back().size()) == most_texts || tokens + length > most_tokens) {
      batches.emplace_back();
      tokens = 0;
    }
    batches.back().push_back(i);
    tokens += length;
  }
  return batches;
}

PackedTokens pack_batch(std::span<const Encoding> texts, const std::vector<size_t>& batch, int64_t token_types) {
  std::vector<int32_t> ids, types, offsets = {0};
  for (const size_t i : batch) {
    const Encoding& text = texts[i];
    if (!text.type_ids.empty() && text.type_ids.size() != text.ids.size())
      fail<DataError>("text {} has {} tokens but {} type ids", i + 1, text.ids.size(), text.type_ids.size());
    ids.insert(ids.end(), text.ids.begin(), text.ids.end());
    types.insert(types.end(), text.type_ids.begin(), text.type_ids.end());
    types.resize(ids.size());
    offsets.push_back(static_cast<int32_t>(ids.size()));
  }
  PackedTokens packed = pack_tokens(ids, offsets);
  if (token_types > 1) packed.types = Indices(std::move(types));
  return packed;
}

}  // namespace attune
