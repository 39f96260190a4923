#include "attune/nn/new_parameter.h"

namespace attune {

Tensor new_parameter(const Shape& shape) {
  return execution().initialize_parameters ? Tensor::zeros(shape) : Tensor::empty(shape);
}

}  // namespace attune
