#pragma once

#include <functional>

#include "attune/tensor/tensor.h"

namespace [[gnu::visibility("default")]] attune {

/// A tensor that make() brings into memory when it is needed. Its shape and dtype are known before.
struct LaterTensor {
  Shape shape;
  DType dtype = DType::f32;
  std::function<Tensor()> make;
};

}  // namespace attune
