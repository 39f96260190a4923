#include "attune/nn/make_panels.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

#include "attune/base/fail.h"
#include "attune/nn/adapters/adapters.h"
#include "attune/nn/adjacent_runs.h"
#include "attune/nn/parameter_uses.h"
#include "attune/ops/linear/precision.h"

namespace attune {
namespace {

using SharedPanels = std::shared_ptr<const PanelWeight>;

// All parameters in the order of visit(); a shared parameter appears each time it is visited.
class Places final : public Visitor {
 public:
  explicit Places(Module& module) { module.visit(*this); }
  std::vector<Parameter*> parameters;

 protected:
  void on_parameter(const std::string&, Parameter& parameter) override { parameters.push_back(&parameter); }
};

// A parameter as inference computes with it: with what its adapter adds, and widened where training has quantised it.
// Such values are made anew at each call, so that they are not all in memory.
struct Source {
  const Parameter* parameter;
  const Adapter* adapter = nullptr;  // null: the values are the parameter's own

  // The same for sources of the same values.
  const void* address() const { return adapter && adapter->there() ? adapter : address_of(*parameter); }
  bool has_values() const { return adapter || parameter->tensor.defined(); }
  Tensor values() const { return adapter ? with_adapter(*parameter, *adapter).tensor : parameter->tensor.detach(); }
  SharedPanels panels() const { return adapter ? nullptr : parameter->panels; }
  Device device() const {
    return parameter->tensor.defined() ? parameter->tensor.device() : parameter->quantised->storage().device();
  }
};

// What inference computes with: all parameters but those of adapters, which are added to the weights.
class Sources final : public Visitor {
 public:
  explicit Sources(Module& module) {
    for (const AdapterSlot& slot : adapter_slots(module))
      if (slot.adapter->there() || slot.weight->quantised) adapters_.emplace(slot.weight, slot.adapter);
    module.visit(*this);
  }
  std::vector<Source> sources;

 protected:
  void on_parameter(const std::string& path, Parameter& parameter) override {
    if (is_of_adapter(path)) return;
    const auto adapter = adapters_.find(&parameter);
    sources.push_back({.parameter = &parameter, .adapter = adapter == adapters_.end() ? nullptr : adapter->second});
  }

 private:
  std::map<const Parameter*, const Adapter*> adapters_;
};

bool is_multiplied(const Parameter& p) {
  return p.use == ParameterUse::product || p.use == ParameterUse::product_and_elements;
}

bool may_have_panels(const Source& s) {
  return is_multiplied(*s.parameter) && s.has_values() && s.parameter->dtype() == DType::f32;
}

// Panels serve the caches of processors: other devices read float32 and bfloat16 as tensors.
bool gets_panels(const Source& s, std::optional<WeightFormat> format, const std::optional<Device>& device) {
  return may_have_panels(s) && (device.value_or(s.device()).is_host() || (format && is_quantised(*format)));
}

WeightFormat format_of(const Source& s) {
  const Tensor& tensor = s.parameter->tensor;
  return tensor.defined() && tensor.dtype() == DType::bf16 ? WeightFormat::bfloat16 : WeightFormat::float32;
}

// Makes the panels of the parameters that products read. The key is the address: parameters that share memory share
// panels.
std::unordered_map<const void*, SharedPanels> panels_of(std::span<const Source> sources,
                                                        std::optional<WeightFormat> format, const PanelInputs& inputs) {
  std::unordered_map<const void*, SharedPanels> panels;
  std::vector<const Source*> weights;
  const auto bytes_of = [&](const Source& s) {
    const Shape shape = shape_of(*s.parameter);
    return PanelWeight::storage_bytes(format.value_or(format_of(s)), shape[0], shape[1]);
  };
  int64_t bytes = 0;
  for (const Source& s : sources) {
    if (!may_have_panels(s) || !panels.try_emplace(s.address()).second) continue;
    weights.push_back(&s);
    bytes += bytes_of(s);
  }
  if (weights.empty()) return panels;
  // One large tensor, so that the system can use large pages.
  const Tensor storage = Tensor::empty({bytes}, {DType::u8, weights.front()->device()});
  int64_t begin = 0;
  for (const Source* s : weights) {
    const int64_t end = begin + bytes_of(*s);
    const Tensor values = inputs.read ? inputs.read(s->values()) : s->values();
    panels[s->address()] = std::make_shared<const PanelWeight>(
        PanelWeight::lay_out(values, format.value_or(format_of(*s)), storage.rows(begin, end)));
    if (inputs.done) inputs.done(values);
    begin = end;
  }
  return panels;
}

}  // namespace

void make_panels(Module& module, std::optional<WeightFormat> format, const PanelInputs& inputs) {
  const Places places(module);
  std::vector<Source> sources;
  for (const Parameter* p : places.parameters) sources.push_back({.parameter = p});
  const auto panels = panels_of(sources, format, inputs);
  for (Parameter* p : places.parameters)
    if (may_have_panels({.parameter = p})) p->panels = panels.at(p->tensor.address());
}

void ensure_panels(Module& module, std::optional<WeightFormat> format) {
  const Places places(module);
  if (std::ranges::any_of(places.parameters, [&](const Parameter* p) {
        return gets_panels({.parameter = p}, format, std::nullopt) && !p->panels;
      }))
    make_panels(module, format);
}

void round_matrices(Module& module) {
  const ParameterUses uses(module);
  std::vector<NamedParameter> matrices;
  for (const NamedParameter& p : named_parameters(module))
    if (p.tensor->dtype() == DType::f32 && uses.is_product_matrix(*p.tensor)) matrices.push_back(p);
  if (matrices.empty()) return;
  const auto rounded = made_of_runs(matrices, [](const Tensor& run) { return to_bfloat16(run); });
  replace_parameters(module, [&](const NamedParameter& p) {
    const auto found = rounded.find(p.name);
    return found == rounded.end() ? Tensor{} : found->second;
  });
}

void keep_panels_alone(Module& module) {
  const Places places(module);
  std::unordered_map<const void*, SharedPanels> panels;
  for (const Parameter* p : places.parameters)
    if (p->panels && p->tensor.defined()) panels.emplace(p->tensor.address(), p->panels);
  for (Parameter* p : places.parameters) {
    const bool by_panels = p->use == ParameterUse::product || p->use == ParameterUse::lookup;
    const auto found = by_panels && p->tensor.defined() ? panels.find(p->tensor.address()) : panels.end();
    if (found == panels.end()) continue;
    p->panels = found->second;
    p->tensor = {};
  }
}

void drop_panels(Module& module) {
  for (Parameter* p : Places(module).parameters)
    if (p->tensor.defined()) p->panels.reset();
}

void copy_for_inference(Module& from, Module& to, std::optional<WeightFormat> format,
                        const std::optional<Device>& device) {
  const std::vector<Source> sources = Sources(from).sources;
  const Places targets(to);
  if (sources.size() != targets.parameters.size())
    fail<ShapeError>("copy_for_inference: {} parameters for a module with {}", sources.size(),
                     targets.parameters.size());
  std::vector<Source> without_panels;
  std::ranges::copy_if(sources, std::back_inserter(without_panels),
                       [&](const Source& s) { return !s.panels() && gets_panels(s, format, device); });
  const auto panels = panels_of(without_panels, format, {});
  std::unordered_map<const void*, Tensor> copies;  // by address: parameters that share memory share a copy
  for (size_t i = 0; i < targets.parameters.size(); ++i) {
    const Source& source = sources[i];
    Parameter& target = *targets.parameters[i];
    target.tensor = {};
    target.panels = source.panels();
    if (!source.has_values()) continue;  // only panels, which never change
    if (!target.panels && gets_panels(source, format, device)) target.panels = panels.at(source.address());
    if (target.panels && source.parameter->use == ParameterUse::product) continue;
    const auto [copy, is_new] = copies.try_emplace(source.address());
    if (is_new) copy->second = source.values().clone();
    target.tensor = copy->second;
  }
}

}  // namespace attune
