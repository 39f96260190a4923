#pragma once
// How a language model continues a text.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "attune/base/fields.h"

namespace [[gnu::visibility("default")]] attune {

/// Changes the distribution of the next token before one is drawn, in the order of the fields.
struct SamplingConfig {
  double repetition_penalty = 1;  // > 1: tokens of the text so far are less likely, Keskar et al. 2019, section 4.1
  double temperature = 1;         // the logits are divided by it; 0: the likeliest token, always
  int64_t top_k = 0;              // only the k likeliest, Fan et al. 2018, section 5.4; 0: all
  double top_p = 1;               // only the fewest likeliest that sum to this, Holtzman et al. 2020, section 3.1
  double min_p = 0;               // only those with this share of the likeliest one's probability, Nguyen et al. 2024
  int64_t max_tokens = 256;       // most tokens of a continuation; 0: as max_length says
  int64_t max_length = 0;         // with max_tokens = 0: most tokens of a prompt and its continuation
  int64_t min_tokens = 0;         // fewest tokens of a continuation before it may end
  int64_t no_repeat_ngram_size = 0;  // no n tokens in a row occur twice in a text, Paulus et al. 2018; 0: no limit
  uint64_t seed = 1;                 // below 2^63; the same one gives the same text
  bool slide = false;                // continues past the context of the model, see TextGenerator

  // Tokens of models that were trained elsewhere.
  std::vector<int64_t> eos_tokens = {};           // each of them ends a text; none: as the tokenizer says
  std::vector<int64_t> suppressed_tokens = {};    // in no text
  std::vector<int64_t> suppressed_at_begin = {};  // not the first token of a continuation
  /// Token sequences that no continuation contains, also not together with the end of its prompt.
  std::vector<std::vector<int64_t>> suppressed_phrases = {};
  int64_t forced_first_token = -1;  // the first token after a prompt of a single token, which begins a text; -1: none
  int64_t forced_last_token = -1;   // the last one of a continuation of max_tokens; -1: nothing
  bool special_tokens = false;      // whether texts may have bos, pad and unk

  /// The most tokens of a continuation of a prompt of so many; at least one.
  int64_t longest_continuation(int64_t prompt_tokens) const {
    return max_tokens > 0 ? max_tokens : std::max<int64_t>(1, max_length - prompt_tokens);
  }
  /// Throws ConfigError naming the field and the value.
  void validate() const;
  bool operator==(const SamplingConfig&) const = default;
};

template <class FieldVisitor>
void visit_fields(SamplingConfig& c, FieldVisitor& v) {
  v("repetition_penalty", c.repetition_penalty);
  v("temperature", c.temperature);
  v("top_k", c.top_k);
  v("top_p", c.top_p);
  v("min_p", c.min_p);
  v("max_tokens", c.max_tokens);
  v("max_length", c.max_length);
  v("min_tokens", c.min_tokens);
  v("no_repeat_ngram_size", c.no_repeat_ngram_size);
  v("seed", c.seed);
  v("slide", c.slide);
  v("eos_tokens", c.eos_tokens);
  v("suppressed_tokens", c.suppressed_tokens);
  v("suppressed_at_begin", c.suppressed_at_begin);
  v("suppressed_phrases", c.suppressed_phrases);
  v("forced_first_token", c.forced_first_token);
  v("forced_last_token", c.forced_last_token);
  v("special_tokens", c.special_tokens);
}

}  // namespace attune
