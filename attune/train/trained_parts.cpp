#include "attune/train/trained_parts.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <utility>

#include "attune/base/fail.h"
#include "attune/base/glob.h"
#include "attune/nn/adapters/adapters.h"
#include "attune/nn/parameter_places.h"

namespace attune {
namespace {

// A parameter with all places that share it.
struct Shared {
  std::vector<std::string> names;
  std::vector<Parameter*> places;
};

std::vector<Shared> parameters_of(Module& model) {
  std::vector<Shared> found;
  std::map<const void*, size_t> numbers;  // by address
  for (const auto& [name, parameter] : places_of(model)) {
    if (!parameter->defined()) continue;
    const auto [number, is_new] = numbers.emplace(address_of(*parameter), found.size());
    if (is_new) found.emplace_back();
    found[number->second].names.push_back(name);
    found[number->second].places.push_back(parameter);
  }
  return found;
}

void freeze(const RunConfig& config, const std::vector<std::string>& new_names, Module& model) {
  const std::vector<std::string>& patterns = config.train.freeze;
  std::vector<char> used(patterns.size());
  for (const Shared& parameter : parameters_of(model)) {
    const auto any = [&](const auto& is_so) { return std::ranges::any_of(parameter.names, is_so); };
    bool frozen = config.lora.on() && !any([&](const std::string& name) {
                    return is_of_adapter(name) || std::ranges::find(new_names, name) != new_names.end();
                  });
    for (size_t i = 0; i < patterns.size(); ++i)
      if (any([&](const std::string& name) { return matches_glob(patterns[i], name); })) used[i] = frozen = true;
    if (!frozen) continue;
    for (Parameter* place : parameter.places) place->trained = false;
  }
  for (size_t i = 0; i < used.size(); ++i)
    if (!used[i]) fail<ConfigError>("train.freeze: \"{}\" names no parameter", patterns[i]);
}

// The number of the layer in a name, or -1.
int64_t layer_of(const std::string& name) {
  constexpr std::string_view kLayers = ".layers.";
  const size_t at = name.find(kLayers);
  int64_t layer = -1;
  if (at != std::string::npos) std::from_chars(name.data() + at + kLayers.size(), name.data() + name.size(), layer);
  return layer;
}

int64_t depth_of(const std::string& name, const TransformerConfig& model) {
  const bool of_decoder = name.starts_with("decoder.") || name.starts_with("target_embedding.");
  const int64_t layers = of_decoder ? model.of_decoder().layers : model.layers;
  if (const int64_t layer = layer_of(name); layer >= 0) return layers - layer;
  if (name.starts_with("decoder.") || name.starts_with("encoder.")) return 1;  // final norms, tables of all layers
  return name.find("embedding") != std::string::npos ? layers + 1 : 0;
}

}  // namespace

void choose_trained(const RunConfig& config, const std::vector<std::string>& new_names, Module& model) {
  if (config.lora.on()) add_adapters(model, config.lora, config.train.seed);
  freeze(config, new_names, model);
  if (trained_parameters(model).empty()) fail<ConfigError>("train.freeze leaves no parameter to be trained");
}

std::vector<double> learning_rate_factors(const RunConfig& config, const std::vector<NamedParameter>& parameters) {
  std::vector<double> factors;
  const double decay = config.train.layer_learning_rate_decay;
  if (decay == 1) return factors;
  for (const NamedParameter& p : parameters)
    factors.push_back(std::pow(decay, static_cast<double>(depth_of(p.name, config.model))));
  return factors;
}

}  // namespace attune
