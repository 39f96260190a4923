#pragma once
// Layers by number, for people.

#include <cstdint>
#include <string>
#include <vector>

namespace attune {

/// "layer 3", "layers 1 to 5, 7, 8": counted from 1. `layers`, counted from 0, is in any order, at least one.
std::string layers_text(std::vector<int64_t> layers);

}  // namespace attune
