#pragma once
// Other segmentations of a tokenised text into the pieces of the same vocabulary: subword regularization.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "attune/base/random.h"
#include "attune/text/tokenizer.h"

namespace attune {

/// Draws segmentations with a SentencePiece model. SentencePiece's own sampling has a generator for each thread whose
/// state cannot be set before a text; here a segmentation is a pure function of ids and generator.
///   unigram   each segmentation of a word with a probability in proportion to P(segmentation)^alpha: Kudo 2018,
///             "Subword Regularization", section 3.2, over all segmentations
///   BPE       merges from characters up, each of which is left out with the probability alpha whenever it could be
///             made: Provilkov et al. 2020, "BPE-Dropout", algorithm 1
class SubwordSampler {
 public:
  /// Throws ConfigError unless the tokenizer is a SentencePieceTokenizer whose model is of one of the two kinds.
  SubwordSampler(const Tokenizer& tokenizer, double alpha);

  /// Returns the ids of another segmentation of each word. Special tokens, bytes and unknown characters stay as they
  /// are.
  std::vector<int32_t> sample(std::span<const int32_t> ids, Random& random) const;

 private:
  struct Piece {
    int32_t id;
    double score;  // unigram: its log probability; BPE: the larger, the earlier it is merged
  };
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };

  const Piece* find(std::string_view text) const;
  void draw_unigram(std::string_view word, Random& random, std::vector<int32_t>& ids) const;
  bool draw_bpe(std::string_view word, Random& random, std::vector<int32_t>& ids) const;

  double alpha_;
  bool bpe_ = false;
  std::vector<std::string> texts_;  // by id; "": stays as it is
  std::unordered_map<std::string, Piece, Hash, std::equal_to<>> pieces_;
  size_t longest_ = 0;  // bytes of a piece
};

}  // namespace attune
