#pragma once
// Checks that operations with attention share.

#include <string_view>

#include "attune/kernels/attention/head_columns.h"

namespace attune {

/// Throws ShapeError, beginning with `op`, unless the heads lie within the rows of x, which the error calls `name`.
void check_columns(std::string_view op, std::string_view name, const HeadColumns& part);

/// Throws ShapeError, beginning with `op`, unless the scale of the scores is positive, or 0 for 1 / sqrt(d_k).
void check_scale(std::string_view op, double scale);

/// Throws ConfigError unless the soft cap is 0 or a finite number above 0, and 0 where a term is `added` to the scores.
void check_soft_cap(std::string_view op, double soft_cap, bool added);

}  // namespace attune
