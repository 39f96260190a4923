#pragma once

#include <functional>

#include "attune/nn/module.h"
#include "attune/tensor/tensor.h"

namespace attune {

/// The derivative of loss() along a random direction of all trained parameters, in float64: backward() against central
/// finite differences, relative to the sum of the products' magnitudes. Of a few steps the best one counts, since one
/// may cross a corner (ReLU) or a jump (the choice of experts). A parameter without a gradient that is not one of an
/// expert fails the test.
double directional_error(Module& model, const std::function<Tensor()>& loss);

}  // namespace attune
