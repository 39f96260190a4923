#include "attune/nn/new_parameter.h"

namespace attune {
namespace {

thread_local bool initializes = true;

}  // namespace

NoInitialization::NoInitialization() : previous_(initializes) {
  initializes = false;
}

NoInitialization::~NoInitialization() {
  initializes = previous_;
}

bool initializes_parameters() {
  return initializes;
}

Tensor new_parameter(const Shape& shape) {
  return initializes ? Tensor::zeros(shape) : Tensor::empty(shape);
}

}  // namespace attune
