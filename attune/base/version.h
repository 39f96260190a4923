#pragma once

#include <string_view>

namespace attune {

/// The version of the library, written into every model. The same as in CMakeLists.txt.
inline constexpr std::string_view kVersion = "0.1.0";

}  // namespace attune
