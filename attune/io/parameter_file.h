#pragma once

#include <filesystem>

#include "attune/io/safetensors.h"

namespace attune {

/// Opens a file with parameters (model.safetensors or a checkpoint) of this version or an older one. Tensors have the
/// names of this version: older files call the weight of a norm "NAME.gain". Throws FileError.
SafetensorsReader open_parameters(const std::filesystem::path& path);

}  // namespace attune
