#pragma once
// The parameters of a module, in one file: model.safetensors of a model folder.

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "attune/io/safetensors.h"
#include "attune/nn/module.h"

namespace [[gnu::visibility("default")]] attune {

inline constexpr const char* kParameterFile = "model.safetensors";

/// Opens a file with parameters (model.safetensors or a checkpoint) of this version or an older one. Tensors have the
/// names of this version: older files call the weight of a norm "NAME.gain". Throws FileError.
SafetensorsReader open_parameters(const std::filesystem::path& path);

/// Every parameter of the module under its name, a shared one once. Throws FileError.
void save_parameters(const std::filesystem::path& path, Module& module,
                     const std::map<std::string, std::string>& metadata = {});

/// Fills every parameter of the module. Each must be there with its shape and dtype, and nothing else may be: FileError
/// names the first that is missing, unknown or different, and the module is then as it was.
void load_parameters(const std::filesystem::path& path, Module& module);

/// The same for a model that is only to be used: parameters become the file's own pages, which are shared with other
/// processes and read when they are needed; see SafetensorsReader::map. Those that cannot be mapped are copied: of
/// types that are converted, and parameters that are to be adjacent (Tensor::joined) and in the file are not. Does not
/// need the module's parameters to have values, see NoInitialization.
void map_parameters(const std::filesystem::path& path, Module& module);
/// Of these parameters of the module alone; `others` are the names of what else has to be in the file.
void map_parameters(const SafetensorsReader& reader, Module& module, const std::vector<NamedParameter>& parameters,
                    const std::set<std::string>& others);

}  // namespace attune
