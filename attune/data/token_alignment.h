#pragma once
// Word alignments of sentence pairs, in terms of their tokens.

#include <cstdint>
#include <span>
#include <vector>

#include "attune/text/word_alignment.h"

namespace attune {

/// A target token and a source token of one sentence pair.
struct TokenLink {
  int32_t target = 0, source = 0;
  bool operator==(const TokenLink&) const = default;
};

/// Links each token of a target word with each token of the source words that it is aligned with, in the order of the
/// target's tokens and then of the source's. `source_words` and `target_words` are the words of the tokens, see
/// words_of_tokens().
std::vector<TokenLink> token_links(const WordAlignment& alignment, std::span<const int32_t> source_words,
                                   std::span<const int32_t> target_words);

/// The links of a batch's target tokens, one after another: token t has the source tokens [sources[offsets[t]],
/// sources[offsets[t + 1]]), each counted within its sentence.
struct PackedLinks {
  std::vector<int32_t> offsets = {0};
  std::vector<int32_t> sources = {};
};

/// The links of all examples of a corpus, in its order.
class TokenAlignments {
 public:
  void add(std::span<const TokenLink> links);
  int64_t examples() const { return static_cast<int64_t>(offsets_.size()) - 1; }
  std::span<const TokenLink> of(int64_t example) const;

  /// Packs the links of the chosen examples, whose target tokens are [target_offsets[i], target_offsets[i + 1]) of the
  /// batch. Throws DataError for an example that does not exist, and for a link beyond its target.
  PackedLinks pack(std::span<const int32_t> indices, std::span<const int32_t> target_offsets) const;

 private:
  std::vector<int64_t> offsets_ = {0};
  std::vector<TokenLink> links_;
};

}  // namespace attune
