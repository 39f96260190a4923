#include "attune/nn/projection_layer.h"

#include "attune/nn/new_parameter.h"

namespace attune {

ProjectionLayer::ProjectionLayer(const Tensor& weight, bool bias, double scale)
    : projection_{.weight = {.tensor = weight, .use = ParameterUse::product},
                  .bias = {.tensor = bias ? new_parameter({weight.size(0)}) : Tensor{}}},
      scale_(scale) {}

}  // namespace attune
