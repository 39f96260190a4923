#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "attune/nn/module.h"

namespace attune {

/// Groups the parameters into runs: those of a run lie one after the other in memory, as rows of one tensor
/// (Tensor::joined). A product of a whole run reads it in place.
std::vector<std::vector<NamedParameter>> adjacent_runs(const std::vector<NamedParameter>& parameters);

/// Calls make() with each run of adjacent_runs() as one tensor; make() returns a tensor with as many rows. Returns, by
/// name, each parameter's rows of these results: adjacent parameters thus stay adjacent.
std::map<std::string, Tensor> made_of_runs(const std::vector<NamedParameter>& parameters,
                                           const std::function<Tensor(const Tensor& run)>& make);

}  // namespace attune
