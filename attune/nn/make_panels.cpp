#include "attune/nn/make_panels.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <unordered_map>
#include <vector>

#include "attune/base/fail.h"
#include "attune/nn/adapters.h"

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

// What inference computes with: all parameters but those of adapters, which are added to the weights. What training
// has quantised is widened.
class AdaptedPlaces final : public Visitor {
 public:
  explicit AdaptedPlaces(Module& module) {
    for (const AdapterSlot& slot : adapter_slots(module))
      if (slot.adapter->there() || slot.weight->quantised) adapters_.emplace(slot.weight, slot.adapter);
    module.visit(*this);
  }
  std::vector<Parameter*> parameters;

 protected:
  void on_parameter(const std::string& path, Parameter& parameter) override {
    if (is_of_adapter(path)) return;
    const auto adapter = adapters_.find(&parameter);
    if (adapter == adapters_.end()) return parameters.push_back(&parameter);
    const auto [place, is_new] = merged_.try_emplace(&parameter, parameter);  // a layer may be visited again
    if (is_new) place->second = with_adapter(parameter, *adapter->second);
    parameters.push_back(&place->second);
  }

 private:
  std::map<const Parameter*, const Adapter*> adapters_;
  std::map<const Parameter*, Parameter> merged_;  // whose addresses stay
};

bool is_multiplied(const Parameter& p) {
  return p.use == ParameterUse::product || p.use == ParameterUse::product_and_elements;
}

bool may_have_panels(const Parameter& p) {
  return is_multiplied(p) && p.tensor.defined() && (p.tensor.dtype() == DType::f32 || p.tensor.dtype() == DType::bf16);
}

WeightFormat format_of(const Tensor& weight) {
  return weight.dtype() == DType::bf16 ? WeightFormat::bfloat16 : WeightFormat::float32;
}

// Makes the panels of the parameters that products read. The key is the address: parameters that share memory share
// panels.
std::unordered_map<const void*, SharedPanels> panels_of(const std::vector<Parameter*>& parameters,
                                                        std::optional<WeightFormat> format, const PanelInputs& inputs) {
  std::unordered_map<const void*, SharedPanels> panels;
  std::vector<Tensor> weights;
  int64_t bytes = 0;
  for (const Parameter* p : parameters) {
    if (!may_have_panels(*p) || !panels.try_emplace(p->tensor.address()).second) continue;
    weights.push_back(p->tensor.detach());
    bytes += PanelWeight::storage_bytes(format.value_or(format_of(p->tensor)), p->tensor.size(0), p->tensor.size(1));
  }
  if (weights.empty()) return panels;
  // One large tensor, so that the system can use large pages.
  const Tensor storage = Tensor::empty({bytes}, {DType::u8, weights.front().device()});
  int64_t begin = 0;
  for (const Tensor& weight : weights) {
    const WeightFormat made = format.value_or(format_of(weight));
    const int64_t end = begin + PanelWeight::storage_bytes(made, weight.size(0), weight.size(1));
    const Tensor values = inputs.read ? inputs.read(weight) : weight;
    panels[weight.address()] =
        std::make_shared<const PanelWeight>(PanelWeight::lay_out(values, made, storage.rows(begin, end)));
    if (inputs.done) inputs.done(values);
    begin = end;
  }
  return panels;
}

}  // namespace

void make_panels(Module& module, std::optional<WeightFormat> format, const PanelInputs& inputs) {
  const Places places(module);
  const auto panels = panels_of(places.parameters, format, inputs);
  for (Parameter* p : places.parameters)
    if (may_have_panels(*p)) p->panels = panels.at(p->tensor.address());
}

void ensure_panels(Module& module, std::optional<WeightFormat> format) {
  const Places places(module);
  if (std::ranges::any_of(places.parameters, [](const Parameter* p) { return may_have_panels(*p) && !p->panels; }))
    make_panels(module, format);
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

void copy_for_inference(Module& from, Module& to, std::optional<WeightFormat> format) {
  const AdaptedPlaces sources(from);
  const Places targets(to);
  if (sources.parameters.size() != targets.parameters.size())
    fail<ShapeError>("copy_for_inference: {} parameters for a module with {}", sources.parameters.size(),
                     targets.parameters.size());
  std::vector<Parameter*> without_panels;
  std::ranges::copy_if(sources.parameters, std::back_inserter(without_panels),
                       [](const Parameter* p) { return !p->panels; });
  const auto panels = panels_of(without_panels, format, {});
  std::unordered_map<const void*, Tensor> copies;  // by address: parameters that share memory share a copy
  for (size_t i = 0; i < targets.parameters.size(); ++i) {
    const Parameter& source = *sources.parameters[i];
    Parameter& target = *targets.parameters[i];
    target.tensor = {};
    target.panels = source.panels;
    if (!source.tensor.defined()) continue;  // only panels, which never change
    if (!target.panels && may_have_panels(source)) target.panels = panels.at(source.tensor.address());
    if (target.panels && source.use == ParameterUse::product) continue;
    const auto [copy, is_new] = copies.try_emplace(source.tensor.address());
    if (is_new) copy->second = source.tensor.detach().clone();
    target.tensor = copy->second;
  }
}

}  // namespace attune
