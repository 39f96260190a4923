#include "attune/optim/adam.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "attune/autograd/graph.h"
#include "attune/base/check.h"
#include "attune/base/fail.h"
#include "attune/base/profile.h"
#include "attune/kernels/adam.h"
#include "attune/kernels/reduce.h"
#include "attune/tensor/dispatch.h"
#include "attune/tensor/memory.h"

namespace attune {
namespace {

// The elements of a parameter or of its gradient that this process updates.
Tensor owned_part(const Tensor& x, const ElementRange& range) {
  return x.reshape({-1}).rows(range.begin, range.end);
}

// Calls f with each run of neighbours whose tensors are on one device and of one dtype.
template <class Item, class TensorOf, class F>
void for_groups(const std::vector<Item>& items, TensorOf tensor_of, F&& f) {
  for (size_t begin = 0, end = 0; begin < items.size(); begin = end) {
    const Tensor first = tensor_of(items[begin]);
    for (end = begin; end < items.size(); ++end)
      if (const Tensor x = tensor_of(items[end]); x.device() != first.device() || x.dtype() != first.dtype()) break;
    f(std::span(items).subspan(begin, end - begin));
  }
}

}  // namespace

Adam::Adam(std::vector<NamedParameter> parameters, const OptimizerConfig& config, double moving_average,
           const std::vector<ElementRange>& owned, std::vector<double> rates)
    : parameters_(std::move(parameters)), config_(config), moving_average_(moving_average), rates_(std::move(rates)) {
  check_below_one("beta_1", config.beta_1);
  check_below_one("beta_2", config.beta_2);
  check_below_one("moving_average", moving_average);
  if (!(config.epsilon > 0)) fail<ConfigError>("epsilon = {}: needs a positive number", config.epsilon);
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const auto& [name, parameter] = parameters_[i];
    const ElementRange range = owned.empty() ? ElementRange{0, parameter->numel()} : owned.at(i);
    const Tensor kept = range.size() == parameter->numel() ? parameter->detach() : owned_part(*parameter, range);
    states_.push_back({.name = name,
                       .m = Tensor::zeros_like(kept),
                       .v = Tensor::zeros_like(kept),
                       .average = moving_average > 0 ? kept.clone() : Tensor{},
                       .range = range});
  }
}

double Adam::gradient_norm() const {
  const ProfileScope scope("gradient norm");
  std::vector<Tensor> gradients;
  for (const auto& [name, parameter] : parameters_)
    if (const Tensor g = gradient(*parameter); g.defined()) gradients.push_back(g);
  double sum = 0;
  for_groups(
      gradients, [](const Tensor& g) { return g; },
      [&](std::span<const Tensor> group) {
        sum += dispatch(group[0].device(), [&](auto device) { return sum_of_squares(device, group); });
      });
  return std::sqrt(sum);
}

double Adam::step(double learning_rate) {
  const ProfileScope scope("adam");
  const double norm = gradient_norm();
  if (std::isfinite(norm)) step(learning_rate, norm);
  return norm;
}

void Adam::step(double learning_rate, double norm) {
  ++steps_;
  const auto t = static_cast<double>(steps_);
  const double decay = std::min(moving_average_, (1 + t) / (10 + t));
  AdamStepArguments arguments{
      .learning_rate = learning_rate,
      .beta_1 = config_.beta_1,
      .beta_2 = config_.beta_2,
      .epsilon = config_.epsilon,
      .gradient_scale = config_.clip_norm > 0 && norm > config_.clip_norm ? config_.clip_norm / norm : 1,
      .bias_correction_1 = 1 - std::pow(config_.beta_1, t),
      .bias_correction_2 = 1 - std::pow(config_.beta_2, t)};
  std::map<double, std::vector<AdamUpdate>> by_rate;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor& p = *parameters_[i].tensor;
    const AdamState& state = states_[i];
    const Tensor g = gradient(p);
    if (!g.defined()) continue;
    const double weight_decay = p.rank() > 1 ? config_.weight_decay : 0;
    by_rate[rates_.empty() ? 1 : rates_[i]].push_back(
        {.parameter = owned_part(p, state.range),
         .gradient = owned_part(g, state.range),
         .m = state.m,
         .v = state.v,
         .average = state.average,
         .weight_decay = config_.kind == OptimizerKind::adamw ? weight_decay : 0,
         .l2 = config_.kind == OptimizerKind::adam ? weight_decay : 0});
  }
  for (const auto& [rate, updates] : by_rate) {
    arguments.learning_rate = learning_rate * rate;
    for_groups(
        updates, [](const AdamUpdate& u) { return u.parameter; },
        [&](std::span<const AdamUpdate> group) {
          dispatch(group[0].parameter.device(), [&](auto device) { adam_steps(device, group, decay, arguments); });
        });
  }
}

void Adam::swap_averages() const {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (!states_[i].average.defined()) continue;
    const Tensor parameter = owned_part(*parameters_[i].tensor, states_[i].range);
    dispatch(parameter.device(), [&](auto device) { swap_values(device, parameter, states_[i].average); });
  }
}

}  // namespace attune
