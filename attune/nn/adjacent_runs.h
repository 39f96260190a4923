#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "attune/nn/module.h"

namespace attune {

/// The parameters in groups, in each of which one follows the other in memory as rows of one tensor (Tensor::joined).
/// Products read such a group in place.
std::vector<std::vector<NamedParameter>> adjacent_runs(const std::vector<NamedParameter>& parameters);

/// Calls make() with each run of adjacent_runs() as one tensor, and returns its rows for each parameter, by name: what
/// is made of adjacent parameters is adjacent. make() returns a tensor with as many rows.
std::map<std::string, Tensor> made_of_runs(const std::vector<NamedParameter>& parameters,
                                           const std::function<Tensor(const Tensor& run)>& make);

}  // namespace attune
