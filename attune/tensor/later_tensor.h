#pragma once

#include <functional>

#include "attune/tensor/tensor.h"

namespace [[gnu::visibility("default")]] attune {

/// A tensor that is in memory from the time at which it is needed.
struct LaterTensor {
  Shape shape;
  DType dtype = DType::f32;
  std::function<Tensor()> make;
};

}  // namespace attune
