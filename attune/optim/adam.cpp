#include "attune/optim/adam.h"

#include <algorithm>
#include <cmath>

#include "attune/autograd/graph.h"
#include "attune/base/check.h"
#include "attune/base/fail.h"
#include "attune/base/profile.h"
#include "attune/kernels/adam.h"
#include "attune/kernels/reduce.h"

namespace attune {

Adam::Adam(std::vector<NamedParameter> parameters, const OptimizerConfig& config, double moving_average,
           const std::vector<ElementRange>& owned)
    : parameters_(std::move(parameters)), config_(config), moving_average_(moving_average) {
  check_below_one("beta_1", config.beta_1);
  check_below_one("beta_2", config.beta_2);
  check_below_one("moving_average", moving_average);
  if (!(config.epsilon > 0)) fail<ConfigError>("epsilon = {}: needs a positive number", config.epsilon);
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const auto& [name, parameter] = parameters_[i];
    const ElementRange range = owned.empty() ? ElementRange{0, parameter->numel()} : owned.at(i);
    const Tensor kept = range.size() == parameter->numel()
                            ? parameter->detach()
                            : parameter->reshape({-1}).detach().rows(range.begin, range.end);
    states_.push_back({.name = name,
                       .m = Tensor::zeros_like(kept),
                       .v = Tensor::zeros_like(kept),
                       .average = moving_average > 0 ? kept.clone() : Tensor{},
                       .range = range});
  }
}

double Adam::gradient_norm() const {
  const ProfileScope scope("gradient norm");
  double sum = 0;
  for (const auto& [name, parameter] : parameters_) {
    const Tensor g = gradient(*parameter);
    if (!g.defined()) continue;
    dispatch_floating("adam", g.dtype(), [&]<class T>(T) {
      dispatch(g.device(), [&](auto device) { sum += sum_of_squares(device, g.data<T>(), g.numel()); });
    });
  }
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
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor& p = *parameters_[i].tensor;
    const AdamState& state = states_[i];
    const Tensor g = gradient(p);
    if (!g.defined()) continue;
    const double weight_decay = p.rank() > 1 ? config_.weight_decay : 0;
    arguments.weight_decay = config_.kind == OptimizerKind::adamw ? weight_decay : 0;
    arguments.l2 = config_.kind == OptimizerKind::adam ? weight_decay : 0;
    dispatch_floating("adam", p.dtype(), [&]<class T>(T) {
      T* average = state.average.defined() ? state.average.data<T>() : nullptr;
      dispatch(p.device(), [&](auto device) {
        adam_step(device, p.data<T>() + state.range.begin, g.data<T>() + state.range.begin, state.m.data<T>(),
                  state.v.data<T>(), average, decay, state.range.size(), arguments);
      });
    });
  }
}

void Adam::swap_averages() const {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (!states_[i].average.defined()) continue;
    dispatch_floating("adam", parameters_[i].tensor->dtype(), [&]<class T>(T) {
      const ElementRange range = states_[i].range;
      std::ranges::swap_ranges(parameters_[i].tensor->template values<T>().subspan(static_cast<size_t>(range.begin),
                                                                                   static_cast<size_t>(range.size())),
                               states_[i].average.template values<T>());
    });
  }
}

}  // namespace attune
