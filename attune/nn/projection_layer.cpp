#include "attune/nn/projection_layer.h"

#include "attune/nn/new_parameter.h"

namespace attune {

ProjectionLayer::ProjectionLayer(const Tensor& weight, const ProjectionOptions& options)
    : projection_{.weight = {.tensor = weight, .use = ParameterUse::product},
                  .bias = {.tensor = options.bias ? new_parameter({weight.size(0)}) : Tensor{}}},
      options_(options) {}

}  // namespace attune
