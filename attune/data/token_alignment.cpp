#include "attune/data/token_alignment.h"

#include <algorithm>

#include "attune/base/fail.h"

namespace attune {

std::vector<TokenLink> token_links(const WordAlignment& alignment, std::span<const int32_t> source_words,
                                   std::span<const int32_t> target_words) {
  std::vector<TokenLink> links;
  for (size_t t = 0; t < target_words.size(); ++t)
    for (size_t s = 0; s < source_words.size(); ++s)
      if (std::ranges::binary_search(alignment, std::pair(source_words[s], target_words[t])))
        links.push_back({.target = static_cast<int32_t>(t), .source = static_cast<int32_t>(s)});
  return links;
}

void TokenAlignments::add(std::span<const TokenLink> links) {
  links_.insert(links_.end(), links.begin(), links.end());
  offsets_.push_back(static_cast<int64_t>(links_.size()));
}

std::span<const TokenLink> TokenAlignments::of(int64_t example) const {
  if (example < 0 || example >= examples())
    fail<DataError>("example {} is outside of the {} with alignments", example, examples());
  const auto begin = static_cast<size_t>(offsets_[static_cast<size_t>(example)]);
  const auto end = static_cast<size_t>(offsets_[static_cast<size_t>(example) + 1]);
  return std::span(links_).subspan(begin, end - begin);
}

PackedLinks TokenAlignments::pack(std::span<const int32_t> indices, std::span<const int32_t> target_offsets) const {
  PackedLinks packed;
  for (size_t i = 0; i < indices.size(); ++i) {
    const std::span<const TokenLink> links = of(indices[i]);
    const int32_t tokens = target_offsets[i + 1] - target_offsets[i];
    size_t next = 0;
    for (int32_t t = 0; t < tokens; ++t) {
      for (; next < links.size() && links[next].target == t; ++next) packed.sources.push_back(links[next].source);
      packed.offsets.push_back(static_cast<int32_t>(packed.sources.size()));
    }
    if (next < links.size())
      fail<DataError>("example {} has a link of target token {}, there are {}", indices[i], links[next].target, tokens);
  }
  return packed;
}

}  // namespace attune
