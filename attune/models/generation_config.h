#pragma once
// How outputs are searched for.

#include <cstdint>
#include <vector>

#include "attune/base/fields.h"

namespace [[gnu::visibility("default")]] attune {

/// The divisor of the log probability of an output Y, so that long outputs can win; |Y| counts the eos.
enum class LengthNormalization {
  wu,     // ((5 + |Y|) / 6)^alpha, Wu et al. 2016, equation 14
  power,  // |Y|^alpha, as in fairseq and Marian
};

template <>
struct EnumNames<LengthNormalization> {
  static constexpr std::pair<LengthNormalization, const char*> values[] = {{LengthNormalization::wu, "wu"},
                                                                           {LengthNormalization::power, "power"}};
};

/// When the search for a sentence ends before the length limit. The results are the best that are finished by then.
enum class EarlyStopping {
  bound,     // when no live hypothesis can score above the worst result: finds the same as a search up to the limit
  first,     // when beam_size outputs are finished, like early_stopping = True of Hugging Face
  patience,  // when `patience` * beam_size outputs are finished, Kasai et al. 2022
  /// When beam_size outputs are finished and no live hypothesis scores above the worst of them at the length that it
  /// has, like early_stopping = False of Hugging Face. A longer one may have come to score above it.
  heuristic,
};

template <>
struct EnumNames<EarlyStopping> {
  static constexpr std::pair<EarlyStopping, const char*> values[] = {{EarlyStopping::bound, "bound"},
                                                                     {EarlyStopping::first, "first"},
                                                                     {EarlyStopping::patience, "patience"},
                                                                     {EarlyStopping::heuristic, "heuristic"}};
};

struct GenerationConfig {
  int64_t beam_size = 4;        // 1: greedy
  double length_penalty = 0.6;  // alpha; 0: none
  LengthNormalization length_normalization = LengthNormalization::wu;
  int64_t max_length = 256;       // tokens of an output, eos included, and ...
  double max_length_ratio = 2.0;  // ... no more than ratio * source tokens + offset; 0: no such limit
  int64_t max_length_offset = 50;
  double coverage_penalty = 0;  // beta of Wu et al. 2016, equation 14; 0: none
  EarlyStopping early_stopping = EarlyStopping::first;
  double patience = 1;               // factor of EarlyStopping::patience
  int64_t beam_groups = 1;           // divides beam_size: diverse beam search, Vijayakumar et al. 2016
  double diversity_penalty = 0;      // lambda, for each time that an earlier group takes a token in the same step
  int64_t min_length = 0;            // fewest tokens of an output before eos
  int64_t no_repeat_ngram_size = 0;  // no n tokens in a row occur twice in a text, Paulus et al. 2018; 0: no limit
  double repetition_penalty = 1;     // > 1: tokens that the text has are less likely, Keskar et al. 2019, section 4.1
  /// Whether this penalty multiplies log probabilities, as transformers does in beam search, and not logits as in the
  /// paper; where beam_size is 1 it is always the logits. The text is the prompt with the output.
  bool penalize_log_probabilities = false;

  /// Whether tokens that are left out (suppressed ones, eos before min_length, n-grams that would repeat) lose their
  /// share of the probability, so that the log probabilities of a step are those of the tokens that are left.
  bool renormalize_logits = false;

  /// Whether an output that the length limit cuts off ranks by its score alone, as in transformers; else it comes after
  /// all that have ended.
  bool rank_unfinished = false;

  // Tokens of models that were trained elsewhere. -1, or none: as the tokenizer says.
  int64_t start_token = -1;                       // what the decoder reads first, else bos
  std::vector<int64_t> eos_tokens = {};           // each of them ends an output, else eos
  int64_t forced_first_token = -1;                // what each output begins with: a language; -1: nothing
  int64_t forced_last_token = -1;                 // what an output that reaches the length limit ends with; -1: nothing
  std::vector<int64_t> suppressed_tokens = {};    // in no output
  std::vector<int64_t> suppressed_at_begin = {};  // not the first token of an output
  /// Token sequences that no output contains, also not together with the end of its prompt.
  std::vector<std::vector<int64_t>> suppressed_phrases = {};
  bool special_tokens = false;  // whether outputs may have pad and bos

  // Some kinds of positions have no limit, so the search has one: a model folder of unknown origin, whose weights never
  // produce eos, may take minutes for a sentence, but neither days nor all memory.
  static constexpr int64_t kMostBeamSize = 1024;
  static constexpr int64_t kMostLength = 1 << 14;
  static constexpr int64_t kMostWork = 1 << 17;  // beam_size * max_length: tokens in the cache of one sentence

  /// Sets max_length to what a user asks for, and lowers min_length if it then leaves no room for an eos.
  void limit_length(int64_t most);
  /// Sets beam_size to what a user asks for, and beam_groups to 1 if they then do not divide it.
  void resize_beam(int64_t size);
  /// Throws ConfigError naming the field and the value.
  void validate() const;
  /// The most tokens, eos included, of an output for a source of so many tokens. It is more than min_length, except
  /// where min_length = max_length: then no output ends with eos.
  int64_t longest_output(int64_t source_tokens) const;
  /// The divisor of the log probability of an output of so many tokens, eos included.
  double length_divisor(int64_t tokens) const;
  bool operator==(const GenerationConfig&) const = default;
};

template <class FieldVisitor>
void visit_fields(GenerationConfig& c, FieldVisitor& v) {
  v("beam_size", c.beam_size);
  v("length_penalty", c.length_penalty);
  v("length_normalization", c.length_normalization);
  v("max_length", c.max_length);
  v("max_length_ratio", c.max_length_ratio);
  v("max_length_offset", c.max_length_offset);
  v("coverage_penalty", c.coverage_penalty);
  v("early_stopping", c.early_stopping);
  v("patience", c.patience);
  v("beam_groups", c.beam_groups);
  v("diversity_penalty", c.diversity_penalty);
  v("min_length", c.min_length);
  v("no_repeat_ngram_size", c.no_repeat_ngram_size);
  v("repetition_penalty", c.repetition_penalty);
  v("penalize_log_probabilities", c.penalize_log_probabilities);
  v("renormalize_logits", c.renormalize_logits);
  v("rank_unfinished", c.rank_unfinished);
  v("start_token", c.start_token);
  v("eos_tokens", c.eos_tokens);
  v("forced_first_token", c.forced_first_token);
  v("forced_last_token", c.forced_last_token);
  v("suppressed_tokens", c.suppressed_tokens);
  v("suppressed_at_begin", c.suppressed_at_begin);
  v("suppressed_phrases", c.suppressed_phrases);
  v("special_tokens", c.special_tokens);
}

}  // namespace attune
