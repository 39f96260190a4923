#pragma once
// Switches that are environment variables.

#include <cstdlib>
#include <string_view>

namespace attune {

/// Whether the environment variable is set to anything but "" and "0".
inline bool environment_switch(const char* name) {
  const char* const value = std::getenv(name);
  const std::string_view text = value != nullptr ? value : "";
  return !text.empty() && text != "0";
}

}  // namespace attune
