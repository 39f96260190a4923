#pragma once
// A small model of each architecture, and tokens for it.

#include "attune/models/config.h"
#include "attune/models/packed_tokens.h"
#include "tests/support/gradient_check.h"

namespace attune {

constexpr int64_t kVocab = 11;

inline TransformerConfig small_config(Architecture architecture, double dropout = 0) {
  TransformerConfig c;
  c.architecture = architecture;
  c.source_vocab = c.target_vocab = c.vocab = kVocab;
  c.d_model = 16;
  c.heads = 4;
  c.layers = 2;
  c.d_ff = 12;
  c.dropout = c.attention_dropout = c.activation_dropout = dropout;
  c.context_length = 16;
  c.labels = {"a", "b", "c"};
  return c;
}

inline PackedTokens random_tokens(const std::vector<int32_t>& lengths, uint64_t seed) {
  const Sequences sequences = Sequences::from_lengths(lengths);
  return {uniform_ids(sequences.total(), kVocab, seed), sequences};
}

}  // namespace attune
