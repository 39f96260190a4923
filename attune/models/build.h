#pragma once
// Builds models from their configurations.

#include <memory>

#include "attune/models/decoder_lm.h"
#include "attune/models/encoder_classifier.h"
#include "attune/models/transformer.h"

namespace [[gnu::visibility("default")]] attune {

/// Builds the model of config.architecture by build_transformer(), build_decoder_lm(), build_encoder_classifier(),
/// build_encoder_masked_lm() or build_encoder_model(). Throws ConfigError naming the field.
std::unique_ptr<Module> build_model(const TransformerConfig& config, uint64_t seed = 1);

}  // namespace attune
