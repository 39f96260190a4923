#pragma once
// The likeliest outputs of an encoder-decoder model.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "attune/inference/decoding/token_sequences.h"
#include "attune/models/generation_config.h"
#include "attune/text/tokenizer.h"

namespace attune {

class Shortlist;
class Transformer;
struct PackedTokens;

struct Hypothesis {
  std::vector<int32_t> tokens;                       // without bos and eos
  double log_probability = 0;                        // of all tokens, eos included
  double score = 0;                                  // see beam_search()
  bool finished = false;                             // ended by eos, not cut off nor at a dead end
  std::vector<double> token_log_probabilities = {};  // of each token, and of eos where it is finished
  std::vector<int32_t> alignment = {};               // on request: the source token of each token
};

struct BeamSearchOptions {
  GenerationConfig generation = {};
  int64_t n_best = 1;          // at most beam_size
  SpecialIds special = {};     // of the target vocabulary; pad may be eos; -1 where SearchTokens needs none
  TokenSequences banned = {};  // phrases that no output contains, also not together with the end of its prompt
  bool alignments = false;     // whether Hypothesis::alignment is wanted
  /// When set, a translation consists of the tokens that the shortlist has for the sentence and of those that
  /// constraints require; probabilities are those among these tokens.
  std::shared_ptr<const Shortlist> shortlist = {};

  /// Throws ConfigError naming the field and the value.
  void validate(int64_t target_vocab) const;
};

/// The tokens that have a part in a search, as the generation's fields and the tokenizer's special ids say.
struct SearchTokens {
  int32_t start;              // what the decoder reads first
  std::vector<int32_t> ends;  // each ends an output
  std::vector<int32_t>
      never;  // in no output, rising: pad and bos unless generation.special_tokens, and suppressed ones

  explicit SearchTokens(const BeamSearchOptions& options);
  bool ends_with(int32_t token) const { return std::find(ends.begin(), ends.end(), token) != ends.end(); }
};

/// What the output of one sentence must contain.
struct SentenceConstraints {
  std::vector<int32_t> prefix = {};  // the output begins with these tokens
  TokenSequences required = {};      // it contains each of these phrases
  bool empty() const { return prefix.empty() && required.empty(); }

  /// Throws ConfigError naming what does not fit the options. The time is linear in the tokens. check_not_banned()
  /// takes longer and is apart, so that a call can make it once for the phrases that all its sentences have.
  void validate(const BeamSearchOptions& options, int64_t target_vocab) const;
};

/// Throws ConfigError where a required phrase contains one that is banned or suppressed. The time is the product of
/// their tokens.
void check_not_banned(const TokenSequences& required, const BeamSearchOptions& options);

/// Returns for each source sentence its n_best hypotheses, best first: finished ones by score, then, where fewer than
/// n_best finished before the length limit, unfinished ones by score. Beam size 1 is greedy search. Where the options
/// leave no token that could follow any live hypothesis, the search ends and these are unfinished ones, last of all.
/// Outputs that differ only in the eos that ends them are one output, with the likeliest of these eos.
///
/// In each step the extensions of a sentence's live hypotheses are ranked by log probability. Those that end with eos
/// and are among the first beam_size are finished; the first beam_size others stay live. With log probability L and N
/// tokens an output Y of the source X has, after Wu et al. 2016, section 7, the score
///   L / length_divisor(N) + coverage_penalty * sum over X of log(min(sum over Y of attention, 1))
/// where attention is the mean over heads of the last layer's cross-attention when the model predicts each token, eos
/// of X and Y included, and a sum is at least 1e-10. A sentence is done when n_best are finished and no live one can
/// reach the score of the last of them: none gets above L / length_divisor(limit). The result is therefore the same as
/// that of a search up to the length limit, unless early_stopping ends the search before, see EarlyStopping.
///
/// With beam_groups the beam is divided into groups, which take turns in each step. A token costs a group
/// diversity_penalty for each time that an earlier group has taken it in the same step (Vijayakumar et al. 2016 with
/// their Hamming diversity). These costs decide which hypotheses stay live; scores do not contain them. An output that
/// several groups find is returned once.
///
/// Tokens that no_repeat_ngram_size, min_length and `banned` rule out keep their share of the probability; the
/// repetition penalty changes the distribution. The tokens that generation.forced_first_token and forced_last_token put
/// at the ends of an output cost nothing; with a last one all outputs end. `constraints` has one entry for each
/// sentence of `source`, or is empty. A prefix is taken even where another option rules its tokens out. For required
/// phrases the beam is divided among banks, Post and Vilar 2018: a bank has the hypotheses with the same number of
/// tokens of the phrases. Only a hypothesis that has all phrases may end. An output that the length limit cuts off may
/// lack some; those with the most of them come first then. To fit its constraints, an output may be longer than
/// longest_output(), but not longer than max_length.
///
/// A sentence's hypotheses do not depend on what else is in the batch. With learned positions an output has no more
/// tokens than there are positions. Throws ConfigError for options that do not fit, and NumericError when the model's
/// logits are not finite.
std::vector<std::vector<Hypothesis>> beam_search(const Transformer& model, const PackedTokens& source,
                                                 const BeamSearchOptions& options,
                                                 std::span<const SentenceConstraints> constraints = {});

}  // namespace attune
