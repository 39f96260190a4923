#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace [[gnu::visibility("default")]] attune {

/// Adapters of one model that requests choose from: folders in PEFT's format by the names that requests give. They lie
/// beside the weights of the model and are not added to them.
using AdapterFolders = std::map<std::string, std::filesystem::path>;

}  // namespace attune
