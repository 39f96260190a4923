#pragma once

#include <string>
#include <utility>
#include <vector>

#include "attune/nn/module.h"

namespace attune {

/// Every place of a parameter in a module with its name, in the order of visit(): a parameter that several parts share
/// has several.
using ParameterPlaces = std::vector<std::pair<std::string, Parameter*>>;
ParameterPlaces places_of(Module& module);

}  // namespace attune
