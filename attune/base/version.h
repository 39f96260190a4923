#pragma once

#include <string_view>

namespace [[gnu::visibility("default")]] attune {

/// The version of the library, written into every model: project(VERSION) of CMakeLists.txt.
std::string_view version();

}  // namespace attune
