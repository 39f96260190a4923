#pragma once
// A small model of each architecture, tokens for it, and its loss.

#include "attune/models/config.h"
#include "attune/models/decoder_lm.h"
#include "attune/models/encoder_classifier.h"
#include "attune/models/packed_tokens.h"
#include "attune/models/transformer.h"
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

/// The loss of a model of small_config() on a small batch.
inline Tensor loss_of(Module& model, Architecture architecture) {
  const PackedTokens source = random_tokens({5, 1, 9}, 1), target = random_tokens({7, 3, 1}, 2);
  const Indices labels = uniform_ids(target.sequences.total(), kVocab, 3);
  switch (architecture) {
    case Architecture::encoder_classifier:
      return dynamic_cast<EncoderClassifier&>(model).loss(source, uniform_ids(3, 3, 4), {}).loss;
    case Architecture::encoder_masked_lm:
      return dynamic_cast<EncoderMaskedLm&>(model)
          .loss(source, uniform_ids(4, static_cast<int32_t>(source.sequences.total()), 5), uniform_ids(4, kVocab, 6),
                {.label_smoothing = 0.1})
          .loss;
    case Architecture::decoder_lm:
      return dynamic_cast<DecoderLm&>(model).loss(target, labels, {.ignore_index = 3}).loss;
    default:
      return dynamic_cast<Transformer&>(model).loss(source, target, labels, {.label_smoothing = 0.1}).loss;
  }
}

}  // namespace attune
