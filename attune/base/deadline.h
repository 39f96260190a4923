#pragma once

#include <chrono>
#include <string_view>

namespace attune {

/// The time so many seconds from now. Throws ConfigError that begins with `name` unless the number is above 0 and at
/// most 1e9: what the clock can hold is more.
std::chrono::steady_clock::time_point deadline_after(double seconds, std::string_view name);

}  // namespace attune
