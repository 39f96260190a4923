#include "attune/models/kinds/feed_forward_kind.h"

#include <fmt/format.h>

#include <algorithm>

#include "attune/base/check.h"
#include "attune/base/with_prefix.h"
#include "attune/models/kinds/layers_text.h"
#include "attune/nn/mixture_of_experts.h"
#include "attune/ops/routing.h"

namespace attune {
namespace {

MixtureOfExpertsConfig config_of(const Experts& kind, const FeedForwardConfig& network) {
  MixtureOfExpertsConfig config{.expert = network,
                                .experts = kind.experts,
                                .shared_experts = kind.shared_experts,
                                .scores = kind.scores,
                                .routing = kind.routing(),
                                .choice_bias = kind.choice_bias,
                                .balance_loss = kind.balance_loss,
                                .bias_rate = kind.bias_rate};
  if (kind.d_ff > 0) config.expert.d_ff = kind.d_ff;
  return config;
}

// The experts of a layer, or null where it has one network.
const Experts* experts_of(const FeedForwardKind& kind, int64_t layer) {
  const auto* experts = std::get_if<Experts>(&kind);
  return experts == nullptr || experts->is_dense(layer) ? nullptr : experts;
}

}  // namespace

RoutingForm Experts::routing() const {
  return {.experts_per_token = experts_per_token,
          .groups = groups,
          .top_groups = top_groups,
          .group_score = group_score,
          .normalised = normalised_weights,
          .scale = weight_scale};
}

bool Experts::is_dense(int64_t layer) const {
  return std::ranges::find(dense_layers, layer) != dense_layers.end();
}

void validate(const FeedForwardKind& kind, const FeedForwardConfig& network, int64_t layers) {
  const auto* experts = std::get_if<Experts>(&kind);
  if (experts == nullptr) return;
  constexpr int64_t kMostExperts = 1 << 12, kMostWidth = 1 << 20;
  const Experts& c = *experts;
  check_range<int64_t>("feed_forward.experts", c.experts, 1, kMostExperts);
  check_range<int64_t>("feed_forward.shared_experts", c.shared_experts, 0, kMostExperts);
  check_range<int64_t>("feed_forward.d_ff", c.d_ff, 0, kMostWidth);
  const int64_t width = c.d_ff > 0 ? c.d_ff : network.d_ff;
  if (c.shared_experts * width > kMostWidth)
    fail<ConfigError>("feed_forward.shared_experts = {}: as wide as {} each they are wider than {}", c.shared_experts,
                      width, kMostWidth);
  with_prefix("feed_forward.", [&] { check_routing(c.routing(), c.experts); });
  check_range("feed_forward.balance_loss", c.balance_loss, 0, 1e6);
  check_range("feed_forward.bias_rate", c.bias_rate, 0, 1);
  if (c.bias_rate > 0 && !c.choice_bias)
    fail<ConfigError>("feed_forward.bias_rate = {}: needs choice_bias = true", c.bias_rate);
  for (const int64_t layer : c.dense_layers)
    check_range<int64_t>("feed_forward.dense_layers: a layer", layer, 0, layers - 1);
}

std::unique_ptr<FeedForwardNetwork> build(const FeedForwardKind& kind, const FeedForwardConfig& network,
                                          int64_t layer) {
  if (const Experts* experts = experts_of(kind, layer))
    return std::make_unique<MixtureOfExperts>(config_of(*experts, network));
  return std::make_unique<FeedForward>(network);
}

int64_t parameter_count(const FeedForwardKind& kind, const FeedForwardConfig& network, int64_t layer) {
  const Experts* experts = experts_of(kind, layer);
  return experts ? MixtureOfExperts::parameter_count(config_of(*experts, network))
                 : FeedForward::parameter_count(network);
}

int64_t active_parameter_count(const FeedForwardKind& kind, const FeedForwardConfig& network, int64_t layer) {
  const Experts* experts = experts_of(kind, layer);
  if (experts == nullptr) return FeedForward::parameter_count(network);
  const MixtureOfExpertsConfig config = config_of(*experts, network);
  return MixtureOfExperts::parameter_count(config) -
         (experts->experts - experts->experts_per_token) * FeedForward::parameter_count(config.expert);
}

bool has_dense_layers(const FeedForwardKind& kind) {
  const auto* experts = std::get_if<Experts>(&kind);
  return experts != nullptr && !experts->dense_layers.empty();
}

std::string summary(const FeedForwardKind& kind, const FeedForwardConfig& network) {
  const auto* experts = std::get_if<Experts>(&kind);
  if (experts == nullptr) return "";
  std::string text = fmt::format("{} experts of {}, {} for each token", experts->experts,
                                 experts->d_ff > 0 ? experts->d_ff : network.d_ff, experts->experts_per_token);
  if (experts->groups > 1) text += fmt::format(" from {} of {} groups", experts->top_groups, experts->groups);
  if (experts->shared_experts > 0) text += fmt::format(", {} shared", experts->shared_experts);
  if (!experts->dense_layers.empty()) text += ", none in " + layers_text(experts->dense_layers);
  return text;
}

}  // namespace attune
