#pragma once
// Dropout, Srivastava et al. 2014: zero with probability p, the rest scaled by 1 / (1 - p).

#include "attune/tensor/tensor.h"

namespace attune {

/// Names a mask. Element (row, column) is kept or dropped as a pure function of this and its place, so that masks are
/// recomputed in the backward pass instead of stored, and do not depend on the number of threads.
struct DropoutMask {
  double probability = 0;  // 0 switches dropout off
  uint64_t seed = 0;
  uint64_t step = 0;
  uint32_t op = 0;  // which dropout of the model

  bool active() const { return probability > 0; }
  bool operator==(const DropoutMask&) const = default;
};

/// x with dropout; the last dimension counts the columns, all others the rows. Same shape. Differentiable.
/// Throws ConfigError unless 0 <= probability < 1.
Tensor dropout(const Tensor& x, const DropoutMask& mask);

}  // namespace attune
