#include "attune/nn/mixture_of_experts.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <string>

#include "attune/autograd/graph.h"
#include "attune/nn/expert_balance.h"
#include "attune/nn/new_parameter.h"
#include "attune/ops/balance_loss.h"
#include "attune/ops/expert_rows.h"
#include "attune/ops/gated_activation.h"
#include "attune/ops/linear/precision.h"
#include "attune/ops/residual.h"
#include "attune/ops/routing.h"
#include "attune/ops/sigmoid.h"
#include "attune/ops/softmax.h"

namespace attune {
namespace {

int64_t inner_width(const FeedForwardConfig& c) {
  return gate_of(c.activation) ? 2 * c.d_ff : c.d_ff;
}

FeedForwardConfig shared_config(const MixtureOfExpertsConfig& c) {
  FeedForwardConfig shared = c.expert;
  shared.d_ff *= c.shared_experts;
  return shared;
}

}  // namespace

MixtureOfExperts::Expert::Expert(const FeedForwardConfig& c, int64_t inner)
    : linear_1(new_projection(c.d_model, inner, c.bias)), linear_2(new_projection(c.d_ff, c.d_model, c.bias)) {}

void MixtureOfExperts::Expert::visit(Visitor& v) {
  const auto visit_projection = [&](const std::string& name, Projection& p) {
    v(name + ".weight", p.weight);
    if (p.bias.defined()) v(name + ".bias", p.bias);
    v(name + ".lora", *p.adapter);
  };
  visit_projection("linear_1", linear_1);
  visit_projection("linear_2", linear_2);
}

MixtureOfExperts::MixtureOfExperts(const MixtureOfExpertsConfig& config)
    : config_(config),
      gate_(gate_of(config.expert.activation)),
      router_{.tensor = new_parameter({config.experts, config.expert.d_model})},
      choice_bias_{.tensor = config.choice_bias ? new_parameter({config.experts}) : Tensor{}, .trained = false},
      shared_(config.shared_experts > 0 ? std::make_unique<FeedForward>(shared_config(config)) : nullptr),
      dropout_(config.expert.dropout) {
  check_routing(config.routing, config.experts);
  for (int64_t e = 0; e < config.experts; ++e)
    experts_.push_back(std::make_unique<Expert>(config.expert, inner_width(config.expert)));
}

int64_t MixtureOfExperts::parameter_count(const MixtureOfExpertsConfig& c) {
  const int64_t shared = c.shared_experts > 0 ? FeedForward::parameter_count(shared_config(c)) : 0;
  return c.experts * (FeedForward::parameter_count(c.expert) + c.expert.d_model + (c.choice_bias ? 1 : 0)) + shared;
}

void MixtureOfExperts::visit(Visitor& v) {
  v("router.weight", router_);
  if (choice_bias_.defined()) v("router.choice_bias", choice_bias_);
  for (size_t e = 0; e < experts_.size(); ++e) v("experts." + std::to_string(e), *experts_[e]);
  if (shared_) v("shared_experts", *shared_);
  v("dropout", dropout_);
}

// A choice between two experts may hang on the last bits of their scores, so that the router's product is never rounded
// to bfloat16 (Fedus et al. 2021, section 2.4).
Tensor MixtureOfExperts::scores(const Tensor& x) const {
  const ProductPrecisionScope float32(ProductPrecision::float32);
  const Tensor logits = linear(for_sums(x), router_.tensor);
  return config_.scores == ExpertScores::softmax ? softmax(logits) : sigmoid(logits);
}

// The library compiles code for each number of rows that it meets. With this unit, an expert with the mean number of
// rows has one of about 16 sizes, and about one row in 32 is padding.
int64_t MixtureOfExperts::unit_of(int64_t tokens) const {
  if (experts_.front()->linear_1.weight.panels) return 1;
  const int64_t mean = tokens * config_.routing.experts_per_token / config_.experts;
  return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(mean / 16, 1))));
}

Tensor MixtureOfExperts::project(const Tensor& x, const std::vector<int64_t>& offsets, Projection Expert::*part) const {
  std::vector<const Projection*> projections;
  for (const auto& expert : experts_) projections.push_back(&((*expert).*part));
  return project_segments(x, offsets, projections, true);
}

Tensor MixtureOfExperts::balanced(const Tensor& weights, const Tensor& scores, std::span<const int64_t> counts) const {
  if (balance_ == nullptr || !execution().recording) return weights;
  balance_->add(index_, counts);
  if (config_.balance_loss == 0) return weights;
  return with_loss(weights, balance_loss(scores, counts), config_.balance_loss * balance_->loss_weight());
}

void MixtureOfExperts::move_bias(std::span<const int64_t> counts) {
  if (config_.bias_rate == 0) return;
  const int64_t all = std::accumulate(counts.begin(), counts.end(), int64_t{0});
  dispatch_floating("move_bias", choice_bias_.tensor.dtype(), [&]<class T>(T) {
    std::vector<T> moves;
    for (const int64_t count : counts) {
      const int64_t excess = count * config_.experts - all;
      moves.push_back(static_cast<T>(excess > 0 ? -config_.bias_rate : excess < 0 ? config_.bias_rate : 0));
    }
    add_in_place(choice_bias_.tensor, Tensor::from(choice_bias_.tensor.shape(), moves, choice_bias_.tensor.device()));
  });
}

Tensor MixtureOfExperts::operator()(const Tensor& x) const {
  const Tensor of_experts = scores(x);
  const Routing routing = route(of_experts, choice_bias_.tensor, config_.routing);
  const ExpertRows rows = sort_by_expert(routing.chosen, config_.experts, unit_of(x.size(0)));
  Tensor h = project(spread_to_experts(x, rows), rows.offsets, &Expert::linear_1);
  h = gate_ ? gated_activation(h, *gate_) : activated(for_sums(h), fused_activation(config_.expert.activation));
  const Tensor y = project(dropout_(h), rows.offsets, &Expert::linear_2);
  const Tensor sum = combine_experts(y, balanced(routing.weights, of_experts, rows.counts), rows);
  return shared_ ? residual_dropout(sum, (*shared_)(x), {}) : sum;
}

}  // namespace attune
