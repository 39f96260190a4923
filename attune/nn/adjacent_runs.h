#pragma once

#include <vector>

#include "attune/nn/module.h"

namespace attune {

/// The parameters in groups, in each of which one follows the other in memory as rows of one tensor (Tensor::joined).
/// Products read such a group in place.
std::vector<std::vector<NamedParameter>> adjacent_runs(const std::vector<NamedParameter>& parameters);

}  // namespace attune
