#pragma once
// Small models with random parameters whose outputs are neither flat nor all alike.

#include <memory>
#include <string>
#include <vector>

#include "attune/base/fail.h"
#include "attune/base/json_fields.h"
#include "attune/base/random.h"
#include "attune/models/transformer.h"
#include "attune/nn/module.h"
#include "attune/text/tokenizer.h"

namespace attune {

inline TransformerConfig small_config(const AttentionKind& attention, NormPlacement norm, int64_t vocab = 40) {
  TransformerConfig c;
  c.source_vocab = vocab;
  c.target_vocab = vocab;
  c.d_model = 32;
  c.heads = 4;
  c.layers = 2;
  c.d_ff = 48;
  c.encoder_attention = c.decoder_attention = c.cross_attention = attention;
  c.norm = norm;
  return c;
}

/// Every kind of attention with every place of the norms.
inline std::vector<TransformerConfig> small_configs(int64_t vocab = 40) {
  std::vector<TransformerConfig> configs;
  for (const NormPlacement norm : {NormPlacement::pre, NormPlacement::post}) {
    configs.push_back(small_config(MultiHead{}, norm, vocab));
    configs.push_back(small_config(MultiHead{.bias = AttentionBias::none}, norm, vocab));
    configs.push_back(small_config(MultiHeadLatent{}, norm, vocab));
    configs.push_back(small_config(MultiHeadLatent{.latent_dim = 12}, norm, vocab));
  }
  configs.back().encoder_attention = MultiHead{};  // mixed
  configs.back().decoder_attention = MultiHead{};
  return configs;
}

inline std::string name_of(const TransformerConfig& c) {
  return write_fields(c).dump();
}

/// Biases and gains are random too; the projection is scaled up, so that a few tokens are likely.
inline std::unique_ptr<Transformer> random_model(const TransformerConfig& config, uint64_t seed = 1) {
  std::unique_ptr<Transformer> model = build_transformer(config, seed);
  Random random(seed, 77);
  for (const NamedParameter& p : named_parameters(*model)) {
    if (p.tensor->rank() == 1) {
      for (float& value : p.tensor->values<float>()) value += static_cast<float>(0.3 * random.normal());
    } else if (p.name == "projection.weight") {
      for (float& value : p.tensor->values<float>()) value *= 4;
    }
  }
  return model;
}

/// The bias of a token's logit.
inline float& token_bias(Transformer& model, int32_t token) {
  for (const NamedParameter& p : named_parameters(model)) {
    if (p.name == "projection.bias") return p.tensor->values<float>()[static_cast<size_t>(token)];
  }
  fail<Error>("the model has no projection.bias");
}

/// Sentences of 1 to `longest` ordinary tokens and eos.
inline std::vector<std::vector<int32_t>> random_sentences(int64_t count, int64_t longest, int64_t vocab,
                                                          uint64_t seed = 3) {
  Random random(seed);
  std::vector<std::vector<int32_t>> sentences(static_cast<size_t>(count));
  for (auto& sentence : sentences) {
    sentence.resize(1 + random.below(static_cast<uint64_t>(longest)));
    for (int32_t& id : sentence) id = static_cast<int32_t>(4 + random.below(static_cast<uint64_t>(vocab - 4)));
    sentence.push_back(SpecialIds{}.eos);
  }
  return sentences;
}

inline PackedTokens pack_sentences(const std::vector<std::vector<int32_t>>& sentences) {
  std::vector<int32_t> ids;
  std::vector<int32_t> offsets = {0};
  for (const auto& sentence : sentences) {
    ids.insert(ids.end(), sentence.begin(), sentence.end());
    offsets.push_back(static_cast<int32_t>(ids.size()));
  }
  return pack_tokens(ids, offsets);
}

}  // namespace attune
