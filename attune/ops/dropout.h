#pragma once
// Dropout, Srivastava et al. 2014: an element becomes zero with probability p; the others are scaled by 1 / (1 - p).

#include <string_view>

#include "attune/kernels/dropout_mask.h"
#include "attune/tensor/tensor.h"

namespace [[gnu::visibility("default")]] attune {

/// Throws ConfigError, naming the operation, unless 0 <= probability < 1.
void check_dropout(std::string_view op, const DropoutMask& mask);

/// x with dropout; the last dimension counts the columns, all others the rows. Same shape. Differentiable.
/// Throws ConfigError unless 0 <= probability < 1.
Tensor dropout(const Tensor& x, const DropoutMask& mask);

}  // namespace attune
