#include "attune/train/trained_parts.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "attune/base/fail.h"
#include "attune/base/glob.h"
#include "attune/nn/adapters.h"

namespace attune {
namespace {

class Freezing final : public Visitor {
 public:
  Freezing(const RunConfig& config, const std::vector<std::string>& new_names)
      : config_(config), new_names_(new_names), used_(config.train.freeze.size()) {}

  void check() const {
    for (size_t i = 0; i < used_.size(); ++i)
      if (!used_[i]) fail<ConfigError>("train.freeze: \"{}\" names no parameter", config_.train.freeze[i]);
  }

 protected:
  void on_parameter(const std::string& path, Parameter& parameter) override {
    if (!parameter.defined()) return;
    const auto [decided, is_new] = frozen_.try_emplace(address_of(parameter), false);
    if (is_new) decided->second = is_frozen(path);
    if (decided->second) parameter.trained = false;
  }

 private:
  bool is_frozen(const std::string& name) {
    bool frozen = config_.lora.on() && !is_of_adapter(name) && std::ranges::find(new_names_, name) == new_names_.end();
    for (size_t i = 0; i < used_.size(); ++i) {
      if (!matches_glob(config_.train.freeze[i], name)) continue;
      used_[i] = true;
      frozen = true;
    }
    return frozen;
  }

  const RunConfig& config_;
  const std::vector<std::string>& new_names_;
  std::vector<char> used_;
  std::map<const void*, bool> frozen_;  // by address
};

// The number of the layer in a name, or -1.
int64_t layer_of(const std::string& name) {
  constexpr std::string_view kLayers = ".layers.";
  const size_t at = name.find(kLayers);
  int64_t layer = -1;
  if (at != std::string::npos) std::from_chars(name.data() + at + kLayers.size(), name.data() + name.size(), layer);
  return layer;
}

int64_t depth_of(const std::string& name, const TransformerConfig& model) {
  const int64_t layers = name.starts_with("decoder.") ? model.of_decoder().layers : model.layers;
  if (const int64_t layer = layer_of(name); layer >= 0) return layers - layer;
  if (name.starts_with("decoder.") || name.starts_with("encoder.")) return 1;  // final norms, tables of all layers
  return name.find("embedding") != std::string::npos ? layers + 1 : 0;
}

}  // namespace

void choose_trained(const RunConfig& config, const std::vector<std::string>& new_names, Module& model) {
  if (config.lora.on()) add_adapters(model, config.lora, config.train.seed);
  Freezing freezing(config, new_names);
  model.visit(freezing);
  freezing.check();
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
