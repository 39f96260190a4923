#pragma once

#include "attune/kernels/routing_form.h"
#include "attune/tensor/tensor.h"

namespace attune {

/// The experts of each token, best first, and their weights.
struct Routing {
  Tensor chosen;   // int32 [tokens, experts_per_token]
  Tensor weights;  // the shape of chosen, the dtype of the scores; differentiable in the scores
};

/// Chooses the experts of each token: among the experts of its best groups those with the largest scores[e] + bias[e],
/// the first one where they are equal. The bias is for the choice alone: the weights are the scores of the chosen
/// experts, divided by their sum if form.normalised, and multiplied by form.scale.
///   scores [tokens, experts], float32 or float64   bias [experts] or undefined
/// Differentiable in the scores, the choice being fixed. Throws ShapeError, and ConfigError for a form that does not
/// fit the number of experts (check_routing). Sources: Shazeer et al. 2017; Fedus et al. 2021; DeepSeek-AI 2024,
/// "DeepSeek-V2", section 2.2, and "DeepSeek-V3", section 2.1.2.
Routing route(const Tensor& scores, const Tensor& bias, const RoutingForm& form);

/// Throws ConfigError naming the field unless this many experts can be routed in this form.
void check_routing(const RoutingForm& form, int64_t experts);

}  // namespace attune
