#pragma once

#include <filesystem>

#include "attune/io/safetensors.h"

namespace attune {

/// A file with parameters, model.safetensors or a checkpoint, whose tensors have the names of today's modules whatever
/// version wrote it: the weight of a norm was "NAME.gain" up to version 0.1.0. Throws FileError.
SafetensorsReader open_parameters(const std::filesystem::path& path);

}  // namespace attune
