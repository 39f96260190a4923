#pragma once

#include <functional>

#include "attune/nn/module.h"
#include "attune/tensor/tensor.h"

namespace attune {

/// The error of the derivative of loss() along a random direction of all trained parameters, in float64: backward()
/// against central finite differences, relative to the sum of the magnitudes of gradient times direction. The best of a
/// few step sizes counts, since one may cross a corner (ReLU) or a jump (the choice of experts). A parameter without a
/// gradient fails the test, unless it is an expert's.
double directional_error(Module& model, const std::function<Tensor()>& loss);

}  // namespace attune
