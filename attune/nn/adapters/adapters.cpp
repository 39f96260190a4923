#include "attune/nn/adapters/adapters.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>

#include "attune/autograd/graph.h"
#include "attune/base/fail.h"
#include "attune/base/glob.h"
#include "attune/nn/adjacent_runs.h"
#include "attune/ops/linear/panel_weight.h"
#include "attune/ops/linear/precision.h"
#include "attune/ops/residual.h"

namespace attune {
namespace {

constexpr std::string_view kPlace = ".lora";              // follows the name of the projection
constexpr uint64_t kStream = uint64_t{0x6c6f7261} << 32;  // "lora": the model's own parameters have other streams

class Slots final : public Visitor {
 public:
  std::vector<AdapterSlot> slots;
  /// Whether another parameter has the same values.
  bool is_shared(const Parameter& parameter) const { return readers_.at(address_of(parameter)).size() > 1; }

 protected:
  void on_parameter(const std::string& path, Parameter& parameter) override {
    parameters_[path] = &parameter;
    readers_[address_of(parameter)].insert(&parameter);
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

// What adapted_parameters() returns.
class Adapted final : public Visitor {
 public:
  explicit Adapted(const std::vector<AdapterSlot>& slots) {
    for (const AdapterSlot& slot : slots)
      if (slot.adapter->there()) adapters_.emplace(slot.weight, slot.adapter);
  }
  std::vector<AdaptedParameter> parameters;

 protected:
  void on_parameter(const std::string& path, Parameter& p) override {
    if (is_of_adapter(path) || !p.defined() || !seen_.insert(address_of(p)).second) return;
    const auto adapter = adapters_.find(&p);
    if (adapter == adapters_.end() && p.tensor.defined()) return parameters.push_back({path, p.tensor.detach()});
    const auto matrix = p.quantised ? p.quantised : p.panels;
    LaterTensor later{.shape = shape_of(p), .dtype = p.dtype(), .make = [matrix] { return matrix->to_matrix(); }};
    if (adapter != adapters_.end()) later.make = [&p, own = adapter->second] { return with_adapter(p, *own).tensor; };
    parameters.push_back({path, {}, std::move(later)});
  }

 private:
  std::map<const Parameter*, const Adapter*> adapters_;
  std::set<const void*> seen_;
};

// "w_q, w_k, linear_1": the last parts of all names.
std::string kinds_of(const std::vector<AdapterSlot>& slots) {
  std::set<std::string> kinds;
  for (const AdapterSlot& slot : slots) kinds.insert(slot.name.substr(slot.name.rfind('.') + 1));
  return fmt::format("{}", fmt::join(kinds, ", "));
}

void add_new(const AdapterSlot& slot, const LoraConfig& config, uint64_t seed, uint64_t stream) {
  const Parameter& weight = *slot.weight;
  if (weight.panels && !weight.tensor.defined()) fail<ConfigError>("lora: {} is there as panels alone", slot.name);
  const TensorOptions options{weight.dtype(), weight.tensor.defined() ? weight.tensor.device() : Device{}};
  const Tensor a = Tensor::empty({config.rank, slot.in()}, options);
  initialize_normal(a, 1 / std::sqrt(3 * static_cast<double>(slot.in())), seed, stream);
  slot.adapter->set(a, Tensor::zeros({slot.out(), config.rank}, options), config.scale(), config.dropout);
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
  if (!weight.tensor.defined() && !weight.quantised)
    fail<ConfigError>("an adapter cannot be added to a weight that is there as panels alone");
  const NoGrad no_grad;
  Parameter sum = weight;
  sum.tensor = weight.quantised ? weight.quantised->to_matrix() : for_sums(weight.tensor.detach());
  if (adapter.there()) sum.tensor = residual_dropout(sum.tensor, adapter.product());
  sum.panels.reset();
  sum.quantised.reset();
  return sum;
}

std::vector<AdaptedParameter> adapted_parameters(Module& module) {
  Adapted adapted(adapter_slots(module));
  module.visit(adapted);
  return std::move(adapted.parameters);
}

void merge_adapters(Module& module) {
  std::set<const Tensor*> own;  // whose memory nothing else holds, so that it may be overwritten
  for (const auto& run : adjacent_runs(named_parameters(module)))
    if (run.front().tensor->shared_by() == std::ssize(run))
      for (const NamedParameter& p : run) own.insert(p.tensor);
  for (const AdapterSlot& slot : adapter_slots(module)) {
    if (!slot.adapter->there()) continue;
    Parameter sum = with_adapter(*slot.weight, *slot.adapter);
    const Tensor& before = slot.weight->tensor;
    if (before.defined() && before.dtype() == DType::bf16) sum.tensor = to_bfloat16(sum.tensor);
    if (own.contains(&before)) {
      before.copy_from(sum.tensor);
      sum.tensor = before.detach();
    }
    *slot.weight = std::move(sum);
    slot.adapter->remove();
  }
}

}  // namespace attune
