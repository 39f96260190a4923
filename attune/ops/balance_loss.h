#pragma once

#include <cstdint>
#include <span>

#include "attune/tensor/tensor.h"

namespace attune {

/// How unevenly tokens are spread over experts: experts * the sum over experts e of f_e P_e, where f_e is the share of
/// all choices that expert e got (counts[e] of their sum), and P_e the mean over tokens of its share of the token's
/// scores. 1 where all get the same. The gradient moves scores from experts that many tokens chose to the others.
///   scores [tokens, experts], float32 or float64   counts [experts]   returns a scalar like the scores
/// Differentiable in the scores as cross_entropy() is in logits; the counts are constants. Throws ShapeError. Source:
/// Fedus et al. 2021, "Switch Transformers", equations 4 to 6, for one choice of a token; DeepSeek-AI 2024,
/// "DeepSeek-V3", equations 17 to 20, for several and for scores whose sum is not 1.
Tensor balance_loss(const Tensor& scores, std::span<const int64_t> counts);

/// Returns x. backward() through the result also adds `scale` times the gradient of `loss`, a scalar that one of the
/// losses in ops/ returned: so training includes the loss of a part of a model that the model itself does not return.
/// Throws ShapeError.
Tensor with_loss(const Tensor& x, const Tensor& loss, double scale);

}  // namespace attune
