#pragma once
// Phrases that an output has to contain, or must not.

#include <cstdint>
#include <span>
#include <vector>

#include "attune/inference/decoding/token_sequences.h"

namespace attune {

/// For each required phrase: how many of its first tokens the output ends with; all of them once the output contains
/// it.
using PhraseProgress = std::vector<int32_t>;

/// Which phrases an output contains, token by token: Knuth, Morris and Pratt 1977.
class RequiredPhrases {
 public:
  static constexpr size_t kMost = 64;

  RequiredPhrases() = default;
  explicit RequiredPhrases(TokenSequences phrases);

  bool empty() const { return phrases_.empty(); }
  int64_t tokens() const;  // of all phrases together
  PhraseProgress begin() const { return PhraseProgress(phrases_.size(), 0); }
  void push(PhraseProgress& progress, int32_t token) const;
  bool complete(const PhraseProgress& progress) const;
  /// Tokens of complete phrases in the output, plus the most tokens of a phrase that is not complete: the bank of Post
  /// and Vilar 2018.
  int64_t bank(const PhraseProgress& progress) const;
  /// The tokens that continue the phrases which are not complete.
  std::vector<int32_t> next(const PhraseProgress& progress) const;

 private:
  TokenSequences phrases_;
  std::vector<std::vector<int32_t>>
      fallback_;  // of each phrase: the longest beginning that the first n tokens end with
};

/// Adds the tokens that would end one of these phrases after `past`. Id: int32_t, or int64_t as in configurations.
template <class Id>
void append_banned(const std::vector<std::vector<Id>>& phrases, std::span<const int32_t> past,
                   std::vector<int32_t>& tokens);

/// Adds the tokens that would complete a repetition: after one of them, the last n tokens would occur in `past`
/// already.
void append_repeats(int64_t n, std::span<const int32_t> past, std::vector<int32_t>& tokens);

}  // namespace attune
