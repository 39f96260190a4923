#pragma once
// Learns from sentence pairs which token translates which.

#include <cstdint>
#include <vector>

#include "attune/data/parallel_corpus.h"

namespace attune {

struct LexiconOptions {
  int64_t iterations = 5;                 // of expectation maximisation
  int64_t best = 50;                      // targets kept for each source token, at most
  int64_t most_pairs = int64_t{1} << 25;  // of tokens that occur together; 24 bytes each while learning
  void validate() const;                  // throws ConfigError
};

/// Returns for each source token its likeliest target tokens, likeliest first and equal ones by lower id: the t(target
/// | source) of IBM model 1 with an empty source word. The last token of each side, eos, is left out. Source: Brown et
/// al. 1993, "The Mathematics of Statistical Machine Translation", section 4.1. Throws DataError for an id outside its
/// vocabulary and when there are more pairs than most_pairs.
std::vector<std::vector<int32_t>> learn_lexicon(const std::vector<ParallelExample>& examples, int64_t source_vocab,
                                                int64_t target_vocab, const LexiconOptions& options = {});

/// Returns the most frequent target tokens without eos, most frequent first and equal ones by lower id.
std::vector<int32_t> frequent_targets(const std::vector<ParallelExample>& examples, int64_t target_vocab,
                                      int64_t count);

}  // namespace attune
