#pragma once

#include "attune/kernels/routing_form.h"
#include "attune/tensor/tensor.h"

namespace attune {

/// Added to the sum that weights are divided by, as in DeepSeek-V3.
constexpr double kRoutingEpsilon = 1e-20;

/// For each token: the experts with the largest scores[e] + bias[e] in its best groups, best first, and of equal ones
/// the first one first; and their weights, which are the scores without the bias, normalised and scaled as the form
/// says.
///   scores [tokens, experts]   bias [experts] or undefined; float32 or float64
///   chosen int32 [tokens, experts_per_token]   weights like chosen, of the type of scores
/// The bias takes part in the choice of groups too. A score that is not a number is chosen last.
struct RoutingTensors {
  Tensor scores, bias, chosen, weights;
};
void route_forward(Cpu, const RoutingForm& form, const RoutingTensors& tensors);
void route_forward(Plain, const RoutingForm& form, const RoutingTensors& tensors);
void route_forward(Cuda, const RoutingForm& form, const RoutingTensors& tensors);

/// Writes all of d_scores [tokens, experts]: the gradient of the weights by the scores, the choice being fixed. Reads
/// scores and chosen.
void route_backward(Cpu, const RoutingForm& form, const RoutingTensors& tensors, const Tensor& d_weights,
                    const Tensor& d_scores);
void route_backward(Plain, const RoutingForm& form, const RoutingTensors& tensors, const Tensor& d_weights,
                    const Tensor& d_scores);
void route_backward(Cuda, const RoutingForm& form, const RoutingTensors& tensors, const Tensor& d_weights,
                    const Tensor& d_scores);

}  // namespace attune
