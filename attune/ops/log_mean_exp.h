#pragma once

#include <span>

#include "attune/tensor/tensor.h"

namespace attune {

/// The logarithm of the mean of exp(x[0]), exp(x[1]), ..., element by element: log probabilities become the logarithm
/// of the mean probability. -inf where all x are. Same shape; not differentiable. Throws ShapeError unless there is at
/// least one tensor and all have one shape, dtype and device.
Tensor log_mean_exp(std::span<const Tensor> x);

}  // namespace attune
