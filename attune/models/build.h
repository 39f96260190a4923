#pragma once
// Builds models from their configurations.

#include <memory>

#include "attune/models/decoder_lm.h"
#include "attune/models/encoder_classifier.h"
#include "attune/models/transformer.h"
#include "attune/nn/new_parameter.h"

namespace [[gnu::visibility("default")]] attune {

/// Builds the model of config.architecture by build_transformer(), build_decoder_lm(), build_encoder_classifier(),
/// build_encoder_masked_lm() or build_encoder_model(). Throws ConfigError naming the field.
std::unique_ptr<Module> build_model(const TransformerConfig& config, uint64_t seed = 1);

/// Builds it for values that are loaded afterwards: its parameters are not initialised. `build` is one of the functions
/// above. Throws as that does.
template <class Build>
auto build_without_values(const TransformerConfig& config, Build&& build) {
  const NoInitialization no_values;
  return build(config, 1);
}
inline std::unique_ptr<Module> build_without_values(const TransformerConfig& config) {
  return build_without_values(config, build_model);
}

}  // namespace attune
