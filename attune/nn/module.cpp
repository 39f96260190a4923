#include "attune/nn/module.h"

#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "attune/autograd/graph.h"
#include "attune/base/random.h"
#include "attune/nn/checkpointed_layer.h"
#include "attune/nn/dropout.h"
#include "attune/ops/panel_weight.h"

namespace attune {
namespace {

class ParameterCollector final : public Visitor {
 public:
  std::vector<NamedParameter> take() { return std::move(parameters_); }

 protected:
  void on_parameter(const std::string& path, Tensor& parameter) override {
    if (seen_.insert(parameter.address()).second) parameters_.push_back({path, &parameter});
  }

 private:
  std::vector<NamedParameter> parameters_;
  std::unordered_set<const void*> seen_;
};

class ParameterReplacer final : public Visitor {
 public:
  using Make = std::function<Tensor(const NamedParameter&)>;
  explicit ParameterReplacer(const Make& make) : make_(make) {}

 protected:
  void on_parameter(const std::string& path, Tensor& parameter) override {
    const auto [place, is_new] = made_.try_emplace(parameter.address(), Tensor{});
    if (is_new) {
      originals_.push_back(parameter);  // keeps the memory, so that its address is not given out again meanwhile
      const Tensor made = make_({path, &parameter});
      place->second = made.defined() ? made : parameter;
    }
    parameter = place->second;
  }
  void on_weight(const std::string& path, Tensor& weight, PanelSlot& packed, WeightUse) override {
    if (!weight.defined()) return;
    packed.reset();
    on_parameter(path, weight);
  }

 private:
  const Make& make_;
  std::unordered_map<const void*, Tensor> made_;
  std::vector<Tensor> originals_;
};

class DropoutSetter final : public Visitor {
 public:
  DropoutSetter(bool training, uint64_t seed, uint64_t step) : training_(training), seed_(seed), step_(step) {}

 protected:
  void on_dropout(const std::string&, Dropout& dropout) override {
    if (training_) {
      dropout.enable(seed_, step_, count_++);
    } else {
      dropout.disable();
    }
  }
  void on_weight(const std::string&, Tensor& weight, PanelSlot& packed, WeightUse) override {
    if (training_ && weight.defined()) packed.reset();
  }

 private:
  bool training_;
  uint64_t seed_;
  uint64_t step_;
  uint32_t count_ = 0;
};

class CheckpointingSetter final : public Visitor {
 public:
  explicit CheckpointingSetter(bool on) : on_(on) {}

 protected:
  void on_checkpointed_layer(const std::string&, CheckpointedLayer& layer) override { layer.set_checkpointing(on_); }

 private:
  bool on_;
};

// Fills a parameter with numbers, element by element.
template <class Next>
void draw(const Tensor& parameter, Next&& next) {
  dispatch_floating("initialisation", parameter.dtype(), [&]<class T>(T) {
    std::vector<T> values(static_cast<size_t>(parameter.numel()));
    for (T& value : values) value = static_cast<T>(next());
    parameter.assign(std::span<const T>(values));
  });
}

}  // namespace

void Visitor::operator()(const std::string& name, Tensor& parameter) {
  on_parameter(path_.empty() ? name : path_ + "." + name, parameter);
}

void Visitor::operator()(const std::string& name, Tensor& weight, PanelSlot& packed, WeightUse use) {
  on_weight(path_.empty() ? name : path_ + "." + name, weight, packed, use);
}

void Visitor::operator()(const std::string& name, Module& part) {
  const std::string outer = path_;
  path_ = outer.empty() ? name : outer + "." + name;
  if (auto* dropout = dynamic_cast<Dropout*>(&part)) on_dropout(path_, *dropout);
  if (auto* layer = dynamic_cast<CheckpointedLayer*>(&part)) on_checkpointed_layer(path_, *layer);
  part.visit(*this);
  path_ = outer;
}

std::vector<NamedParameter> named_parameters(Module& module) {
  ParameterCollector collector;
  module.visit(collector);
  return collector.take();
}

int64_t parameter_count(Module& module) {
  int64_t count = 0;
  for (const NamedParameter& p : named_parameters(module)) count += p.tensor->numel();
  return count;
}

void set_training(Module& module, uint64_t seed, uint64_t step) {
  DropoutSetter setter(true, seed, step);
  module.visit(setter);
}

void set_evaluation(Module& module) {
  DropoutSetter setter(false, 0, 0);
  module.visit(setter);
}

void set_activation_checkpointing(Module& module, bool on) {
  CheckpointingSetter setter(on);
  module.visit(setter);
}

void replace_parameters(Module& module, const std::function<Tensor(const NamedParameter&)>& make) {
  ParameterReplacer replacer(make);
  module.visit(replacer);
}

void require_gradients(Module& module) {
  replace_parameters(module, [](const NamedParameter& parameter) {
    Tensor leaf = parameter.tensor->detach();
    require_gradient(leaf);
    return leaf;
  });
}

void move_parameters(Module& module, const Device& device) {
  replace_parameters(module, [&](const NamedParameter& parameter) { return parameter.tensor->to(device); });
}

void convert_parameters(Module& module, DType dtype) {
  replace_parameters(module, [dtype](const NamedParameter& parameter) { return parameter.tensor->to(dtype); });
}

void initialize_parameters(Module& module, uint64_t seed) {
  uint64_t stream = 0;
  for (const NamedParameter& p : named_parameters(module)) {
    Random random(seed, stream++);
    if (p.tensor->rank() != 2) continue;
    const double bound = std::sqrt(6.0 / static_cast<double>(p.tensor->size(0) + p.tensor->size(1)));
    draw(*p.tensor, [&] { return (2 * random.uniform() - 1) * bound; });
  }
}

void clear_gradients(Module& module) {
  for (const NamedParameter& p : named_parameters(module)) clear_gradient(*p.tensor);
}

void initialize_normal(const Tensor& parameter, double deviation, uint64_t seed, uint64_t stream) {
  Random random(seed, stream);
  draw(parameter, [&] { return random.normal() * deviation; });
}

}  // namespace attune
