#pragma once

#include "attune/ops/sequences.h"
#include "attune/tensor/tensor.h"

namespace [[gnu::visibility("default")]] attune {

/// The mean over the rows of each sequence; zeros for a sequence without rows.
///   x [total, d]   returns [sequences, d]
/// Differentiable in x. Throws ShapeError.
Tensor mean_pool(const Tensor& x, const Sequences& sequences);

}  // namespace attune
