#include "attune/nn/adapters.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "attune/autograd/graph.h"
#include "attune/base/fail.h"
#include "attune/base/glob.h"
#include "attune/ops/residual.h"

namespace attune {
namespace {

constexpr std::string_view kPlace = ".lora";              // of the adapter in a projection's name
constexpr uint64_t kStream = uint64_t{0x6c6f7261} << 32;  // "lora": the model's own parameters have other streams

class Slots final : public Visitor {
 public:
  std::vector<AdapterSlot> slots;
  /// Whether another parameter is the same tensor.
  bool is_shared(const Parameter& parameter) const {
    return parameter.tensor.defined() && readers_.at(parameter.tensor.address()).size() > 1;
  }

 protected:
  void on_parameter(const std::string& path, Parameter& parameter) override {
    parameters_[path] = &parameter;
    if (parameter.tensor.defined()) readers_[parameter.tensor.address()].insert(&parameter);
  }
  void on_module(const std::string& path, Module& part) override {
    auto* const adapter = dynamic_cast<Adapter*>(&part);
    if (adapter == nullptr || !seen_.insert(adapter).second) return;
    const std::string name = path.substr(0, path.size() - kPlace.size());
    slots.push_back({name, parameters_.at(name + ".weight"), adapter});
  }

 private:
  std::map<std::string, Parameter*> parameters_;
  std::map<const void*, std::set<const Parameter*>> readers_;  // by address
  std::set<const Adapter*> seen_;
};

bool is_all(const std::string& target) {
  return target == "all";
}

bool names(const std::string& target, const AdapterSlot& slot) {
  if (is_all(target))
    return slot.name.find(".layers.") != std::string::npos && slot.weight->use == ParameterUse::product;
  return matches_glob(target, slot.name) || slot.name.ends_with("." + target);
}

// "w_q, w_k, linear_1": the last parts of all names.
std::string kinds_of(const std::vector<AdapterSlot>& slots) {
  std::set<std::string> kinds;
  for (const AdapterSlot& slot : slots) kinds.insert(slot.name.substr(slot.name.rfind('.') + 1));
  return fmt::format("{}", fmt::join(kinds, ", "));
}

void add_new(const AdapterSlot& slot, const LoraConfig& config, uint64_t seed, uint64_t stream) {
  const Tensor& weight = slot.weight->tensor;
  if (!weight.defined()) fail<ConfigError>("lora: {} is there as panels alone", slot.name);
  const int64_t out = weight.size(0), in = weight.size(1);
  const TensorOptions options{weight.dtype(), weight.device()};
  const Tensor a = Tensor::empty({config.rank, in}, options);
  initialize_normal(a, 1 / std::sqrt(3 * static_cast<double>(in)), seed, stream);
  slot.adapter->set(a, Tensor::zeros({out, config.rank}, options), config.scale(), config.dropout);
}

}  // namespace

bool is_of_adapter(std::string_view parameter) {
  return parameter.ends_with(".lora.a") || parameter.ends_with(".lora.b");
}

std::vector<AdapterSlot> adapter_slots(Module& module) {
  Slots found;
  module.visit(found);
  return std::move(found.slots);
}

void add_adapters(Module& module, const LoraConfig& config, uint64_t seed) {
  config.validate();
  Slots found;
  module.visit(found);
  const std::vector<AdapterSlot>& slots = found.slots;
  for (const std::string& target : config.targets)
    if (std::ranges::none_of(slots, [&](const AdapterSlot& slot) { return names(target, slot); }))
      fail<ConfigError>("lora.targets: \"{}\" names no projection; there are {}", target, kinds_of(slots));
  uint64_t stream = kStream;
  for (const AdapterSlot& slot : slots) {
    if (std::ranges::none_of(config.targets, [&](const std::string& target) { return names(target, slot); })) continue;
    if (slot.weight->use != ParameterUse::product || found.is_shared(*slot.weight))
      fail<ConfigError>("lora.targets: the weight of {} is read by more than this product, so that it has no adapter",
                        slot.name);
    add_new(slot, config, seed, stream++);
  }
  number_dropouts(module);
}

Parameter with_adapter(const Parameter& weight, const Adapter& adapter) {
  if (!weight.tensor.defined())
    fail<ConfigError>("an adapter cannot be added to a weight that is there as panels alone");
  const NoGrad no_grad;
  Parameter sum = weight;
  sum.tensor = residual_dropout(weight.tensor.detach(), adapter.product());
  sum.panels.reset();
  return sum;
}

std::vector<std::pair<std::string, Tensor>> adapted_parameters(Module& module) {
  std::map<const void*, AdapterSlot> slots;  // by the weight's address
  for (const AdapterSlot& slot : adapter_slots(module))
    if (slot.adapter->there()) slots.emplace(slot.weight->tensor.address(), slot);
  std::vector<std::pair<std::string, Tensor>> parameters;
  for (const auto& [name, tensor] : named_parameters(module)) {
    if (is_of_adapter(name)) continue;
    const auto slot = slots.find(tensor->address());
    parameters.emplace_back(name, slot == slots.end()
                                      ? tensor->detach()
                                      : with_adapter(*slot->second.weight, *slot->second.adapter).tensor);
  }
  return parameters;
}

void merge_adapters(Module& module) {
  for (const AdapterSlot& slot : adapter_slots(module)) {
    if (!slot.adapter->there()) continue;
    *slot.weight = with_adapter(*slot.weight, *slot.adapter);
    slot.adapter->remove();
  }
}

}  // namespace attune
