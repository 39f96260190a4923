#pragma once
// The likeliest outputs of an encoder-decoder model.

#include <cstdint>
#include <vector>

#include "attune/data/tokenizer.h"
#include "attune/generate/config.h"
#include "attune/models/transformer.h"

namespace attune {

struct Hypothesis {
  std::vector<int32_t> tokens;  // without bos and eos
  double log_probability = 0;   // of all tokens, eos included
  double score = 0;             // log_probability / GenerationConfig::length_divisor
  bool finished = false;        // ended by eos, not by the length limit
};

struct BeamSearchOptions {
  GenerationConfig generation = {};
  int64_t n_best = 1;       // at most beam_size
  SpecialIds special = {};  // of the target vocabulary; pad and bos are never produced, pad may be eos

  /// Throws ConfigError naming the field and the value.
  void validate(int64_t target_vocab) const;
};

/// For each source sentence its n_best hypotheses, best first: finished ones by score, then, where the length limit
/// left too few of those, unfinished ones by score. Beam size 1 is greedy search.
///
/// In each step the extensions of a sentence's live hypotheses are ranked by log probability. Those that end with eos
/// and are among the first beam_size are finished; the first beam_size others live on. A sentence is done when n_best
/// are finished and no live one can reach the score of the last of them: with log probability L and at most N tokens
/// none gets above L / length_divisor(N). What is returned is therefore what a search up to the length limit would
/// find. Source: Wu et al. 2016, section 7.
///
/// A sentence's hypotheses do not depend on what else is in the batch. With learned positions an output has no more
/// tokens than these. Throws ConfigError for options that do not fit, and NumericError when the model's logits are not
/// finite.
std::vector<std::vector<Hypothesis>> beam_search(const Transformer& model, const PackedTokens& source,
                                                 const BeamSearchOptions& options);

}  // namespace attune
