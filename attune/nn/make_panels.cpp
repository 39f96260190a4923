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
#include "attune/nn/parameter_places.h"
#include "attune/nn/parameter_uses.h"
#include "attune/ops/linear/precision.h"

namespace attune {
namespace {

using SharedPanels = std::shared_ptr<const PanelWeight>;

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

// Copies of the values of some sources, by address: parameters that share memory share a copy. Adjacent parameters stay
// adjacent, so that a product of several of them needs no copy.
std::unordered_map<const void*, Tensor> copies_of(Module& module, std::span<const Source> sources) {
  std::unordered_map<const void*, Tensor> copies;
  for (const Source& s : sources) {
    const auto [copy, is_new] = copies.try_emplace(s.address());
    if (is_new && s.adapter) copy->second = s.values().clone();
  }
  std::vector<NamedParameter> own;
  for (const NamedParameter& p : named_parameters(module)) {
    const auto copy = copies.find(p.tensor->address());
    if (copy != copies.end() && !copy->second.defined()) own.push_back(p);
  }
  const auto made = made_of_runs(own, [](const Tensor& run) { return run.clone(); });
  for (const NamedParameter& p : own) copies[p.tensor->address()] = made.at(p.name);
  return copies;
}

}  // namespace

void make_panels(Module& module, std::optional<WeightFormat> format, const PanelInputs& inputs) {
  const ParameterPlaces places = places_of(module);
  std::vector<Source> sources;
  for (const auto& [name, p] : places) sources.push_back({.parameter = p});
  const auto panels = panels_of(sources, format, inputs);
  for (const auto& [name, p] : places)
    if (may_have_panels({.parameter = p})) p->panels = panels.at(p->tensor.address());
}

void ensure_panels(Module& module, std::optional<WeightFormat> format) {
  if (std::ranges::any_of(places_of(module), [&](const auto& place) {
        return gets_panels({.parameter = place.second}, format, std::nullopt) && !place.second->panels;
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
  const ParameterPlaces places = places_of(module);
  std::unordered_map<const void*, SharedPanels> panels;
  for (const auto& [name, p] : places)
    if (p->panels && p->tensor.defined()) panels.emplace(p->tensor.address(), p->panels);
  for (const auto& [name, p] : places) {
    const bool by_panels = p->use == ParameterUse::product || p->use == ParameterUse::lookup;
    const auto found = by_panels && p->tensor.defined() ? panels.find(p->tensor.address()) : panels.end();
    if (found == panels.end()) continue;
    p->panels = found->second;
    p->tensor = {};
  }
}

void drop_panels(Module& module) {
  for (const auto& [name, p] : places_of(module))
    if (p->tensor.defined()) p->panels.reset();
}

void copy_for_inference(Module& from, Module& to, std::optional<WeightFormat> format,
                        const std::optional<Device>& device) {
  const std::vector<Source> sources = Sources(from).sources;
  const ParameterPlaces targets = places_of(to);
  if (sources.size() != targets.size())
    fail<ShapeError>("copy_for_inference: {} parameters for a module with {}", sources.size(), targets.size());
  const auto has_panels = [&](const Source& s) { return s.panels() || gets_panels(s, format, device); };
  const auto has_tensor = [&](const Source& s) {  // one that has only panels shares them: they never change
    return s.has_values() && !(has_panels(s) && s.parameter->use == ParameterUse::product);
  };
  std::vector<Source> without_panels, with_tensors;
  std::ranges::copy_if(sources, std::back_inserter(without_panels),
                       [&](const Source& s) { return !s.panels() && has_panels(s); });
  std::ranges::copy_if(sources, std::back_inserter(with_tensors), has_tensor);
  const auto panels = panels_of(without_panels, format, {});
  const auto copies = copies_of(from, with_tensors);
  for (size_t i = 0; i < targets.size(); ++i) {
    const Source& source = sources[i];
    Parameter& target = *targets[i].second;
    target.panels = source.panels();
    if (!target.panels && has_panels(source)) target.panels = panels.at(source.address());
    target.tensor = has_tensor(source) ? copies.at(source.address()) : Tensor{};
  }
}

}  // namespace attune
