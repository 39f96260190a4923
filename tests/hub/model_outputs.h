#pragma once

#include <vector>

#include "attune/autograd/graph.h"
#include "attune/models/decoder_lm.h"
#include "attune/models/encoder_classifier.h"
#include "attune/models/packed_tokens.h"
#include "attune/models/transformer.h"
#include "attune/tensor/host_view.h"

namespace attune {

/// The logits of any model, or the states of one without a projection. An encoder-decoder reads the tokens on both
/// sides.
inline std::vector<float> model_outputs(const Module& model, const PackedTokens& tokens) {
  const NoGrad no_grad;
  if (const auto* lm = dynamic_cast<const DecoderLm*>(&model))
    return host_values<float>(lm->project(lm->decode(tokens)));
  if (const auto* classifier = dynamic_cast<const EncoderClassifier*>(&model))
    return host_values<float>((*classifier)(tokens));
  if (const auto* masked = dynamic_cast<const EncoderMaskedLm*>(&model))
    return host_values<float>(masked->project(masked->encode(tokens)));
  if (const auto* encoder = dynamic_cast<const EncoderModel*>(&model))
    return host_values<float>(encoder->encode(tokens));
  const auto& both = dynamic_cast<const Transformer&>(model);
  return host_values<float>(both.project(both.decode(both.encode(tokens), tokens.sequences, tokens)));
}

}  // namespace attune
