#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace attune {

/// The number of the adapter with this name, or kNoAdapter for "". Throws ConfigError with the names that there are.
int32_t adapter_number(std::span<const std::string> names, const std::string& name);

}  // namespace attune
