#pragma once

#include <cstdint>
#include <vector>

namespace [[gnu::visibility("default")]] attune {

using TokenSequences = std::vector<std::vector<int32_t>>;

}  // namespace attune
