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

// Calls f with each run of neighbours whose tensors have one dtype.
template <class Item, class TensorOf, class F>
void for_groups(const std::vector<Item>& items, TensorOf tensor_of, F&& f) {
  for (size_t begin = 0, end = 0; begin < items.size(); begin = end) {
    const DType dtype = tensor_of(items[begin]).dtype();
    for (end = begin + 1; end < items.size() && tensor_of(items[end]).dtype() == dtype;) ++end;
    f(std::span(items).subspan(begin, end - begin));
  }
}

// What there is one of for each parameter, or none at all.
void check_count(const char* what, size_t count, size_t parameters) {
  if (count != 0 && count != parameters) fail<ShapeError>("adam: {} {} for {} parameters", count, what, parameters);
}

}  // namespace

Adam::Adam(std::vector<NamedParameter> parameters, const OptimizerConfig& config, double moving_average,
           const std::vector<ElementRange>& owned, std::vector<double> rates)
    : parameters_(std::move(parameters)), config_(config), moving_average_(moving_average), rates_(std::move(rates)) {
  check_below_one("beta_1", config.beta_1);
  check_below_one("beta_2", config.beta_2);
  check_below_one("moving_average", moving_average);
  if (!(config.epsilon > 0)) fail<ConfigError>("epsilon = {}: needs a positive number", config.epsilon);
  check_range<double>("weight_decay", config.weight_decay, 0, 1e6);
  check_range<double>("clip_norm", config.clip_norm, 0, 1e6);
  check_count("ranges", owned.size(), parameters_.size());
  check_count("rates", rates_.size(), parameters_.size());
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const auto& [name, parameter] = parameters_[i];
    if (parameter->device() != device())
      fail<ShapeError>("adam: {} is on {}, but {} on {}", name, parameter->device().text(), parameters_.front().name,
                       device().text());
    const ElementRange range = owned.empty() ? ElementRange{0, parameter->numel()} : owned[i];
    const Tensor kept = range.size() == parameter->numel() ? parameter->detach() : owned_part(*parameter, range);
    states_.push_back({.name = name,
                       .m = Tensor::zeros_like(kept),
                       .v = Tensor::zeros_like(kept),
                       .average = moving_average > 0 ? kept.clone() : Tensor{},
                       .range = range});
  }
}

void Adam::add_squares(const Tensor& sum) const {
  const ProfileScope scope("gradient norm");
  std::vector<Tensor> gradients;
  for (const auto& [name, parameter] : parameters_) {
    const Tensor g = gradient(*parameter);
    if (!g.defined()) continue;
    if (g.device() != parameter->device())
      fail<ShapeError>("adam: {} is on {}, but its gradient on {}", name, parameter->device().text(),
                       g.device().text());
    gradients.push_back(g);
  }
  for_groups(
      gradients, [](const Tensor& g) { return g; },
      [&](std::span<const Tensor> group) {
        dispatch(sum.device(), [&](auto on) { attune::add_squares(on, group, sum); });
      });
}

double Adam::step(double learning_rate) {
  const Tensor squares = Tensor::zeros({1}, {DType::f64, device()});
  add_squares(squares);
  start_step(learning_rate, squares);
  const double norm = std::sqrt(squares.item());
  if (std::isfinite(norm)) count_step();
  return norm;
}

void Adam::start_step(double learning_rate, const Tensor& numbers) {
  const ProfileScope scope("adam");
  const auto t = static_cast<double>(steps_ + 1);
  const double decay = std::min(moving_average_, (1 + t) / (10 + t));
  AdamStepArguments arguments{.learning_rate = learning_rate,
                              .beta_1 = config_.beta_1,
                              .beta_2 = config_.beta_2,
                              .epsilon = config_.epsilon,
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
  const AdamCondition condition{.numbers = numbers, .clip_norm = config_.clip_norm};
  for (const auto& [rate, updates] : by_rate) {
    arguments.learning_rate = learning_rate * rate;
    for_groups(
        updates, [](const AdamUpdate& u) { return u.parameter; },
        [&](std::span<const AdamUpdate> group) {
          dispatch(device(), [&](auto on) { adam_steps(on, group, condition, decay, arguments); });
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
