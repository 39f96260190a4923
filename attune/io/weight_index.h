#pragma once
// Weights in several files (shards) of one folder: model.safetensors.index.json, pytorch_model.bin.index.json.

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace attune {

/// The "weight_map" of an index: for each tensor the name of a file beside the index. Throws FileError, naming the
/// file: not JSON, no weight_map, a tensor that comes twice, a file that does not lie in the index's own folder.
std::map<std::string, std::string> read_weight_map(const std::filesystem::path& index);

/// The shards STEM-00001-of-00003.EXTENSION of a folder, in order, for a folder without an index; empty where there are
/// none. Throws FileError when one of them is missing or there are shards of several sets.
std::vector<std::filesystem::path> find_shards(const std::filesystem::path& folder, const std::string& stem,
                                               const std::string& extension);

}  // namespace attune
