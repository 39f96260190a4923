#pragma once
// Models that are written as folders of the hub and read back.

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "attune/base/random.h"
#include "attune/hub/hub_folder.h"
#include "attune/hub/hub_writer.h"
#include "attune/models/build.h"
#include "attune/tensor/host_view.h"

namespace attune {

inline std::vector<std::string> parameter_names(Module& model) {
  std::vector<std::string> names;
  for (const NamedParameter& p : named_parameters(model)) names.push_back(p.name);
  return names;
}

/// Norms are 1 and biases 0 at first, which hides mistakes.
inline std::unique_ptr<Module> model_to_export(const TransformerConfig& config, uint64_t seed) {
  std::unique_ptr<Module> model = build_model(config, seed);
  uint64_t stream = 100;
  for (const NamedParameter& p : named_parameters(*model)) {
    Random random(seed, stream++);
    std::vector<float> values = host_values<float>(*p.tensor);
    for (float& value : values) value += 0.2f * static_cast<float>(random.normal());
    p.tensor->assign(std::span<const float>(values));
  }
  return model;
}

/// The class of transformers that the model is written as. Throws ConfigError where it has none.
inline HubForm form_of(Module& model, const TransformerConfig& config, const std::string& family = "",
                       const SpecialIds& special = {}) {
  return hub_form_of(config, parameter_names(model), special, family);
}

}  // namespace attune
