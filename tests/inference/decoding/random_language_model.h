#pragma once
// Small language models with random parameters that are decided about the next token.

#include <memory>

#include "attune/base/random.h"
#include "attune/models/build.h"
#include "attune/models/decoder_lm.h"

namespace attune {

inline TransformerConfig small_language_config(int64_t vocab, int64_t context = 32, int64_t layers = 2) {
  TransformerConfig c;
  c.architecture = Architecture::decoder_lm;
  c.vocab = vocab;
  c.d_model = 32;
  c.heads = 4;
  c.layers = layers;
  c.d_ff = 48;
  c.positions = RotaryOptions{};
  c.context_length = context;
  return c;
}

inline std::unique_ptr<DecoderLm> random_language_model(const TransformerConfig& config, uint64_t seed = 1) {
  auto model = build_decoder_lm(config, seed);
  Random random(seed, 78);
  for (const NamedParameter& p : named_parameters(*model)) {
    const double deviation = p.name == "projection.weight" ? 0.3 : 0.2;
    for (float& value : p.tensor->values<float>()) value += static_cast<float>(deviation * random.normal());
  }
  return model;
}

}  // namespace attune
