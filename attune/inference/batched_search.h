#pragma once
// Beam search for many sentences, of which some leave while others enter.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "attune/inference/beam.h"

namespace attune {

struct FoundSentence {
  size_t id;  // as it was added
  std::vector<Hypothesis> hypotheses;
};

/// The sentences that are searched for at the moment. One that is done leaves, and others may be added before each
/// step, so that the rows of the model stay busy and memory is that of what is there at once. What is found for a
/// sentence does not depend on when it came and what was there with it.
class BatchedSearch {
 public:
  /// Model and options have to outlive the search. Throws ConfigError for options that do not fit.
  BatchedSearch(const Transformer& model, const BeamSearchOptions& options);

  /// Sentences that enter, with constraints for each of them or none at all. Throws ConfigError.
  void add(std::span<const size_t> ids, const PackedTokens& source,
           std::span<const SentenceConstraints> constraints = {});
  /// One more token for every hypothesis; returns the sentences that are done with it.
  std::vector<FoundSentence> step();

  int64_t sentences() const { return static_cast<int64_t>(sentences_.size()); }
  int64_t source_tokens() const;
  int64_t cache_bytes() const { return cache_.bytes(); }

 private:
  struct Sentence {
    size_t id;
    int64_t source_tokens;
    Beam beam;
    std::vector<int32_t> columns = {};  // with a shortlist: the tokens of its logits, rising
  };
  std::vector<int32_t> columns_of(std::span<const int32_t> source, const SentenceConstraints& constraints) const;
  Tensor logits();
  std::vector<CandidateRules> rules() const;
  void penalize_repetition(const Tensor& logits) const;
  int64_t limit_of(int64_t source_tokens, const SentenceConstraints& constraints) const;

  const Transformer& model_;
  const BeamSearchOptions& options_;
  std::vector<int32_t> excluded_;
  KvCache cache_;  // the rows of the sentences, in their order
  std::vector<Sentence> sentences_;
  std::vector<int32_t> tokens_;  // of each row
  CandidateLists candidates_;    // of the step at work, as the rest: kept for their memory
  std::vector<Sentence> remaining_;
  std::vector<int32_t> parents_;
};

}  // namespace attune
