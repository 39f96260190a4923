#pragma once
// How outputs are searched for.

#include <cstdint>

#include "attune/base/fields.h"

namespace attune {

/// What the log probability of an output Y is divided by, so that long ones stand a chance; |Y| counts the eos.
enum class LengthNormalization {
  wu,     // ((5 + |Y|) / 6)^alpha, Wu et al. 2016, equation 14
  power,  // |Y|^alpha, as in fairseq and Marian
};

template <>
struct EnumNames<LengthNormalization> {
  static constexpr std::pair<LengthNormalization, const char*> values[] = {{LengthNormalization::wu, "wu"},
                                                                           {LengthNormalization::power, "power"}};
};

struct GenerationConfig {
  int64_t beam_size = 4;        // 1: greedy
  double length_penalty = 0.6;  // alpha; 0: none
  LengthNormalization length_normalization = LengthNormalization::wu;
  int64_t max_length = 256;       // tokens of an output, eos included, and ...
  double max_length_ratio = 2.0;  // ... no more than ratio * source tokens + offset; 0: no such limit
  int64_t max_length_offset = 50;

  // Positions have no limit in the model, so the search sets one: a model folder from somewhere, whose weights never
  // produce eos, may cost minutes a sentence, but neither days nor all memory.
  static constexpr int64_t kMostBeamSize = 1024;
  static constexpr int64_t kMostLength = 1 << 14;
  static constexpr int64_t kMostWork = 1 << 17;  // beam_size * max_length: tokens in the cache of one sentence

  /// Throws ConfigError naming the field and the value.
  void validate() const;
  /// The most tokens that an output of a source with so many tokens may have, eos included; at least 1.
  int64_t longest_output(int64_t source_tokens) const;
  /// What the log probability of an output of so many tokens, eos included, is divided by.
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
}

}  // namespace attune
