#include "attune/ops/routing.h"

#include <cmath>

#include "attune/autograd/graph.h"
#include "attune/base/check.h"
#include "attune/base/profile.h"
#include "attune/kernels/routing.h"
#include "attune/ops/rows.h"
#include "attune/tensor/dispatch.h"

namespace attune {

void check_routing(const RoutingForm& form, int64_t experts) {
  check_range<int64_t>("experts_per_token", form.experts_per_token, 1, experts);
  check_range<int64_t>("groups", form.groups, 1, experts);
  check_range<int64_t>("top_groups", form.top_groups, 1, form.groups);
  if (experts % form.groups != 0)
    fail<ConfigError>("groups = {}: {} experts cannot be divided into as many equal groups", form.groups, experts);
  const int64_t size = experts / form.groups;
  if (form.experts_per_token > form.top_groups * size)
    fail<ConfigError>("experts_per_token = {}: top_groups = {} groups of {} have fewer experts", form.experts_per_token,
                      form.top_groups, size);
  if (form.groups > 1 && size < 2 && form.group_score == GroupScore::sum_of_two)
    fail<ConfigError>("group_score = \"sum_of_two\": a group has one expert, groups = {} of {} experts", form.groups,
                      experts);
  if (!(form.scale > 0 && std::isfinite(form.scale)))
    fail<ConfigError>("weight_scale = {}: needs a number above 0", form.scale);
}

Routing route(const Tensor& scores, const Tensor& bias, const RoutingForm& form) {
  constexpr const char* op = "route";
  const ProfileScope scope(op);
  check_rows(op, scores);
  if (scores.rank() != 2) fail<ShapeError>("{}: needs a matrix of scores, found {}", op, scores.shape().text());
  if (bias.defined()) check_column_vector(op, scores, "bias", bias);
  check_device(op, scores, {bias});
  check_routing(form, scores.size(1));
  const Shape shape = {scores.size(0), form.experts_per_token};
  const RoutingTensors tensors{.scores = scores.detach(),
                               .bias = bias.defined() ? bias.detach() : Tensor{},
                               .chosen = Tensor::empty(shape, {DType::i32, scores.device()}),
                               .weights = Tensor::empty(shape, {scores.dtype(), scores.device()})};
  dispatch(scores.device(), [&](auto device) { route_forward(device, form, tensors); });
  Routing routing{.chosen = tensors.chosen, .weights = tensors.weights};
  const RoutingTensors kept{.scores = tensors.scores, .bias = {}, .chosen = tensors.chosen, .weights = {}};
  record(op, {scores}, routing.weights, [kept, form](const Tensor& dy) {
    Tensor d_scores = Tensor::empty_like(kept.scores);
    dispatch(dy.device(), [&](auto device) { route_backward(device, form, kept, dy, d_scores); });
    return Gradients{d_scores};
  });
  return routing;
}

}  // namespace attune
