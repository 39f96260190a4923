#include "attune/text/huggingface/trie.h"

#include <algorithm>

namespace attune::huggingface {

void Trie::ensure(size_t size) {
  if (nodes_.size() < size) nodes_.resize(std::max(size, nodes_.size() + nodes_.size() / 2));
}

/// A base where all children of a node find a free place. Places that were refused often are not looked at again.
uint32_t Trie::place(const std::vector<uint8_t>& labels) {
  while (first_free_ < nodes_.size() && nodes_[first_free_].parent != kFree) ++first_free_;
  uint32_t misses = 0;
  for (uint32_t first = std::max<uint32_t>(first_free_, labels.front() + 1u);; ++first) {
    ensure(first + 257);
    const uint32_t base = first - labels.front();
    const bool fits =
        std::all_of(labels.begin(), labels.end(), [&](uint8_t label) { return nodes_[base + label].parent == kFree; });
    if (fits) {
      if (misses > 512) first_free_ = std::max(first_free_, first - 256);
      return base;
    }
    ++misses;
  }
}

void Trie::build(std::vector<std::pair<std::string_view, int32_t>> keys) {
  std::stable_sort(keys.begin(), keys.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  nodes_.assign(512, {});
  nodes_[kRoot].parent = kRoot;
  struct Range {
    uint32_t node;
    size_t begin, end, depth;  // keys that share `depth` bytes
  };
  std::vector<Range> open{{kRoot, 0, keys.size(), 0}};
  std::vector<uint8_t> labels;
  std::vector<size_t> begins;
  while (!open.empty()) {
    const Range range = open.back();
    open.pop_back();
    size_t begin = range.begin;
    for (; begin < range.end && keys[begin].first.size() == range.depth; ++begin)
      if (range.depth > 0) nodes_[range.node].value = keys[begin].second;
    if (begin == range.end) continue;
    labels.clear();
    begins.clear();
    for (size_t i = begin; i < range.end; ++i) {
      const auto label = static_cast<uint8_t>(keys[i].first[range.depth]);
      if (!labels.empty() && labels.back() == label) continue;
      labels.push_back(label);
      begins.push_back(i);
    }
    begins.push_back(range.end);
    const uint32_t base = place(labels);
    nodes_[range.node].base = base;
    for (size_t i = 0; i < labels.size(); ++i) {
      nodes_[base + labels[i]].parent = range.node;
      open.push_back({base + labels[i], begins[i], begins[i + 1], range.depth + 1});
    }
  }
  size_t used = nodes_.size();
  while (used > 1 && nodes_[used - 1].parent == kFree) --used;
  nodes_.resize(used);
  nodes_.shrink_to_fit();
}

}  // namespace attune::huggingface
