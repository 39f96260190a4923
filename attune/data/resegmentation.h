#pragma once
// The texts of a batch in other subwords, drawn anew in each step.

#include <cstdint>
#include <optional>
#include <span>

#include "attune/data/batch_sampler.h"
#include "attune/data/labelled_corpus.h"
#include "attune/text/subword_sampler.h"

namespace attune {

struct ResegmentationOptions {
  double alpha = 0;  // see SubwordSampler
  uint64_t seed = 1;
  int64_t longest = 0;  // tokens of a sequence at most: one that would get more stays as it was
};

/// Draws the subwords of a batch anew. The result is a pure function of options, tokens, the examples' numbers and the
/// number of the forward pass, so that neither threads nor ranks nor a resumed run change it.
class Resegmentation {
 public:
  /// Throws ConfigError unless both tokenizers are SentencePiece models, see SubwordSampler.
  Resegmentation(const Tokenizer& source, const Tokenizer& target, const ResegmentationOptions& options);

  /// `examples`: the numbers of the batch's sequences in the corpus.
  PackedBatch operator()(const PackedBatch& batch, std::span<const int32_t> examples, uint64_t forward) const;
  LabelledBatch operator()(const LabelledBatch& batch, std::span<const int32_t> examples, uint64_t forward) const;

 private:
  std::vector<int32_t> drawn(const SubwordSampler& sampler, std::span<const int32_t> ids, Random& random) const;

  SubwordSampler source_, target_;
  ResegmentationOptions options_;
};

}  // namespace attune
