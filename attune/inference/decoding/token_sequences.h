#pragma once

#include <cstdint>
#include <vector>

namespace attune {

using TokenSequences = std::vector<std::vector<int32_t>>;

}  // namespace attune
