#pragma once

#include <string>
#include <utility>
#include <vector>

#include "attune/nn/module.h"

namespace attune {

/// Every parameter of a module with its name, in the order of visit(). A parameter that several parts share is there
/// once for each of them.
using ParameterPlaces = std::vector<std::pair<std::string, Parameter*>>;
ParameterPlaces places_of(Module& module);

}  // namespace attune
