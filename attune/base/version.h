#pragma once

#include <string_view>

namespace [[gnu::visibility("default")]] attune {

/// The version of the library, from project(VERSION) in CMakeLists.txt. Every saved model records it.
std::string_view version();

}  // namespace attune
