#pragma once

#include <chrono>
#include <string_view>

namespace attune {

/// Returns the time that is `seconds` from now. Throws ConfigError, beginning with `name`, unless 0 < seconds <= 1e9,
/// which the clock can hold.
std::chrono::steady_clock::time_point deadline_after(double seconds, std::string_view name);

}  // namespace attune
