#pragma once
// The one place where models are put together from their configuration.

#include <memory>

#include "attune/models/decoder_lm.h"
#include "attune/models/encoder_classifier.h"
#include "attune/models/transformer.h"

namespace [[gnu::visibility("default")]] attune {

/// The model of config.architecture, see build_transformer and its like. Throws ConfigError naming the field.
std::unique_ptr<Module> build_model(const TransformerConfig& config, uint64_t seed = 1);

}  // namespace attune
