#include "attune/data/token_alignment.h"

#include <algorithm>
#include <unordered_map>

#include "attune/base/fail.h"

namespace attune {
namespace {

using WordTokens = std::unordered_map<int32_t, std::vector<int32_t>>;

WordTokens tokens_of_words(std::span<const int32_t> words) {
  WordTokens tokens;
  for (size_t i = 0; i < words.size(); ++i) tokens[words[i]].push_back(static_cast<int32_t>(i));
  return tokens;
}

}  // namespace

std::vector<TokenLink> token_links(const WordAlignment& alignment, std::span<const int32_t> source_words,
                                   std::span<const int32_t> target_words) {
  const WordTokens of_source = tokens_of_words(source_words), of_target = tokens_of_words(target_words);
  std::vector<std::pair<int32_t, int32_t>> pairs;  // of target and source tokens
  for (const auto& [source, target] : alignment) {
    const auto sources = of_source.find(source), targets = of_target.find(target);
    if (sources == of_source.end() || targets == of_target.end()) continue;
    for (const int32_t t : targets->second)
      for (const int32_t s : sources->second) pairs.emplace_back(t, s);
  }
  std::ranges::sort(pairs);
  std::vector<TokenLink> links;
  for (const auto& [t, s] : pairs) links.push_back({.target = t, .source = s});
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
