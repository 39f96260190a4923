#include "attune/nn/module.h"

#include <cmath>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "attune/autograd/graph.h"
#include "attune/base/fail.h"
#include "attune/base/random.h"
#include "attune/nn/adjacent_runs.h"
#include "attune/nn/checkpointed_layer.h"
#include "attune/nn/dropout.h"
#include "attune/nn/for_each_part.h"
#include "attune/ops/linear/panel_weight.h"

namespace attune {
namespace {

class ParameterCollector final : public Visitor {
 public:
  explicit ParameterCollector(bool trained_alone) : trained_alone_(trained_alone) {}
  std::vector<NamedParameter> take() { return std::move(parameters_); }

 protected:
  void on_parameter(const std::string& path, Parameter& parameter) override {
    if (!parameter.tensor.defined() || (trained_alone_ && !parameter.trained)) return;
    if (seen_.insert(parameter.tensor.address()).second) parameters_.push_back({path, &parameter.tensor});
  }

 private:
  bool trained_alone_;
  std::vector<NamedParameter> parameters_;
  std::unordered_set<const void*> seen_;
};

class ParameterCounter final : public Visitor {
 public:
  int64_t count = 0;

 protected:
  void on_parameter(const std::string&, Parameter& p) override {
    if (!p.defined() || !seen_.insert(address_of(p)).second) return;
    count += shape_of(p).numel();
  }

 private:
  std::unordered_set<const void*> seen_;
};

std::vector<NamedParameter> collect(Module& module, bool trained_alone) {
  ParameterCollector collector(trained_alone);
  module.visit(collector);
  return collector.take();
}

class ParameterReplacer final : public Visitor {
 public:
  using Make = std::function<Tensor(const std::string& path, const Parameter&)>;
  explicit ParameterReplacer(const Make& make) : make_(make) {}

 protected:
  void on_parameter(const std::string& path, Parameter& parameter) override {
    if (!parameter.tensor.defined()) return;
    parameter.panels.reset();
    const auto [place, is_new] = made_.try_emplace(parameter.tensor.address(), Tensor{});
    if (is_new) {
      originals_.push_back(parameter.tensor);  // keeps the memory, so that its address is not given out again meanwhile
      const Tensor made = make_(path, parameter);
      place->second = made.defined() ? made : parameter.tensor;
    }
    parameter.tensor = place->second;
  }

 private:
  const Make& make_;
  std::unordered_map<const void*, Tensor> made_;
  std::vector<Tensor> originals_;
};

void replace(Module& module, const ParameterReplacer::Make& make) {
  ParameterReplacer replacer(make);
  module.visit(replacer);
}

// Moves the matrices that stand in place of tensors.
class MatrixMover final : public Visitor {
 public:
  explicit MatrixMover(const Device& device) : device_(device) {}

 protected:
  void on_parameter(const std::string&, Parameter& parameter) override {
    if (parameter.tensor.defined()) return;
    for (auto* const matrix : {&parameter.panels, &parameter.quantised}) {
      if (*matrix == nullptr) continue;
      auto& moved = moved_[*matrix];
      if (moved == nullptr) moved = std::make_shared<const PanelWeight>((*matrix)->to(device_));
      *matrix = moved;
    }
  }

 private:
  Device device_;
  std::map<std::shared_ptr<const PanelWeight>, std::shared_ptr<const PanelWeight>> moved_;
};

// Fills a parameter with the results of next(), element by element.
template <class Next>
void draw(const Tensor& parameter, Next&& next) {
  dispatch_floating("initialisation", parameter.dtype(), [&]<class T>(T) {
    std::vector<T> values(static_cast<size_t>(parameter.numel()));
    for (T& value : values) value = static_cast<T>(next());
    parameter.assign(std::span<const T>(values));
  });
}

}  // namespace

void Visitor::operator()(const std::string& name, Parameter& parameter) {
  on_parameter(path_.empty() ? name : path_ + "." + name, parameter);
}

void Visitor::operator()(const std::string& name, Module& part) {
  const std::string outer = path_;
  path_ = outer.empty() ? name : outer + "." + name;
  on_module(path_, part);
  part.visit(*this);
  path_ = outer;
}

std::vector<NamedParameter> named_parameters(Module& module) {
  return collect(module, false);
}

std::vector<NamedParameter> trained_parameters(Module& module) {
  return collect(module, true);
}

Shape shape_of(const Parameter& parameter) {
  if (parameter.tensor.defined()) return parameter.tensor.shape();
  const PanelWeight& matrix = parameter.quantised ? *parameter.quantised : *parameter.panels;
  return {matrix.out(), matrix.in()};
}

const void* address_of(const Parameter& parameter) {
  if (parameter.tensor.defined()) return parameter.tensor.address();
  return parameter.quantised ? parameter.quantised.get() : parameter.panels.get();
}

int64_t parameter_count(Module& module) {
  ParameterCounter counter;
  module.visit(counter);
  return counter.count;
}

void number_dropouts(Module& module) {
  uint32_t next = 0;
  for_each_part<Dropout>(module, [&](Dropout& dropout) { dropout.set_index(next++); });
}

void set_activation_checkpointing(Module& module, bool on) {
  for_each_part<CheckpointedLayer>(module, [&](CheckpointedLayer& layer) { layer.set_checkpointing(on); });
}

void replace_parameters(Module& module, const std::function<Tensor(const NamedParameter&)>& make) {
  replace(module, [&](const std::string& path, const Parameter& parameter) {
    Tensor tensor = parameter.tensor;
    return make({path, &tensor});
  });
}

void require_gradients(Module& module) {
  for (const NamedParameter& p : trained_parameters(module))
    if (p.tensor->dtype() == DType::bf16)
      fail<ShapeError>("require_gradients: {} is bfloat16, for inference alone; training needs float32", p.name);
  replace(module, [](const std::string&, const Parameter& parameter) {
    if (parameter.trained && requires_gradient(parameter.tensor)) return parameter.tensor;
    Tensor leaf = parameter.tensor.detach();
    if (parameter.trained) require_gradient(leaf);
    return leaf;
  });
}

// Adjacent parameters stay adjacent, so that a product of several of them needs no copy.
void move_parameters(Module& module, const Device& device) {
  const auto moved = made_of_runs(named_parameters(module), [&](const Tensor& run) { return run.to(device); });
  replace_parameters(module, [&](const NamedParameter& parameter) { return moved.at(parameter.name); });
  MatrixMover mover(device);
  module.visit(mover);
}

void convert_parameters(Module& module, DType dtype) {
  replace(module, [dtype](const std::string&, const Parameter& parameter) { return parameter.tensor.to(dtype); });
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
