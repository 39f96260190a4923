#pragma once
// All that a model of a tiny vocabulary may write.

#include <vector>

#include "tests/inference/decoding/search_reference.h"

namespace attune {

inline constexpr int64_t kVocab = 7, kLength = 5;  // of the outputs of a tiny model
inline const Tokens kSource = {5, 6, 4, kEos};

// Every output of at most kLength tokens, eos included, that ends with eos, likeliest first.
inline std::vector<Hypothesis> every_output(const Transformer& model, const GenerationConfig& generation) {
  std::vector<Hypothesis> all, prefixes = {{}};
  for (int64_t length = 1; length <= kLength; ++length) {
    std::vector<Hypothesis> longer;
    for (const Hypothesis& h : prefixes) {
      const auto next = next_log_probabilities(model, kSource, h.tokens, generation);
      for (const int32_t token : {1, 3, 4, 5, 6}) {
        Hypothesis e = h;
        e.log_probability += next[static_cast<size_t>(token)];
        e.score = e.log_probability / generation.length_divisor(length);
        e.finished = token == kEos;
        if (!e.finished) e.tokens.push_back(token);
        (e.finished ? all : longer).push_back(e);
      }
    }
    prefixes = longer;
  }
  return all;
}

}  // namespace attune
