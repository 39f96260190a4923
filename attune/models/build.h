#pragma once
// The one place where models are put together from their configuration.

#include <memory>

#include "attune/models/decoder_lm.h"
#include "attune/models/encoder_classifier.h"
#include "attune/models/transformer.h"

namespace attune {

/// The model of config.architecture, see build_transformer and its like. Throws ConfigError naming the field.
std::unique_ptr<Module> build_model(const TransformerConfig& config, uint64_t seed = 1);

/// Models whose parameters are about to be read from a file: as build_transformer and its like, but zeros instead of
/// random numbers, which would take seconds to draw. Throws ConfigError.
std::unique_ptr<Transformer> allocate_transformer(const TransformerConfig& config);
std::unique_ptr<DecoderLm> allocate_decoder_lm(const TransformerConfig& config);
std::unique_ptr<EncoderClassifier> allocate_encoder_classifier(const TransformerConfig& config);

}  // namespace attune
