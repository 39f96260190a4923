#pragma once

#include "attune/tensor/tensor.h"

namespace attune {

/// Columns [begin, end) of x, copied.
///   x [n, w]   returns [n, end - begin]
/// Differentiable in x. Throws ShapeError.
Tensor take_columns(const Tensor& x, int64_t begin, int64_t end);

}  // namespace attune
