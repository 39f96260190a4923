#pragma once
// Where the tests find files. These are functions, so that objects of tests do not depend on the folder of the build.

#include <filesystem>
#include <string>

namespace attune {

/// The root of the sources.
std::filesystem::path source_dir();

/// The `attune` of this build.
std::string attune_binary();

}  // namespace attune
