#pragma once

#include "attune/tensor/tensor.h"

namespace [[gnu::visibility("default")]] attune {

/// Scalars on the device of the inputs, as in CrossEntropy.
struct SquaredError {
  Tensor loss;  // differentiable, scaled; in the dtype of the inputs
  Tensor sum;   // float64: of the squares, not scaled
};

/// scale * the sum of (x - target)^2 over all elements; scale = 0: 1 / their number, the mean squared error.
///   x, target: one shape, with a dimension; float32 or float64
/// Differentiable in x as cross_entropy() is in logits; the targets are constants. Throws ShapeError. Source: the same
/// as torch.nn.MSELoss with its reduction "mean", and as what transformers' classes minimise for problem_type
/// "regression".
SquaredError squared_error(const Tensor& x, const Tensor& target, double scale = 0);

}  // namespace attune
