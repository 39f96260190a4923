#pragma once

#include "attune/tensor/indices.h"
#include "attune/tensor/tensor.h"

namespace [[gnu::visibility("default")]] attune {

/// y[i] = x[rows[i]], or zeros where rows[i] is -1. Removes the padding of a batch, and restores it.
///   x [n, d]   rows [m]   returns [m, d]
/// Differentiable in x. Throws ShapeError.
Tensor gather(const Tensor& x, const Indices& rows);

}  // namespace attune
