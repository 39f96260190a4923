#pragma once
// The parameters of a module, in one file: model.safetensors of a model folder.

#include <filesystem>
#include <functional>
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

/// Writes every parameter of the module under its name, a shared one once; adapters are added to their weights. Calls
/// `before_each` before it writes a parameter; when that throws, nothing is left. Throws FileError.
void save_parameters(const std::filesystem::path& path, Module& module,
                     const std::map<std::string, std::string>& metadata = {},
                     const std::function<void()>& before_each = {});

/// Fills every parameter of the module. The file must have each with its shape and dtype, and nothing else. Otherwise
/// throws FileError, which names the first that is missing, unknown or different, and leaves the module as it was.
void load_parameters(const std::filesystem::path& path, Module& module);

/// The same for a model that is used without training: parameters become the file's own pages, which other processes
/// share and which are read when they are needed, see SafetensorsReader::map. Two sorts are copied instead: parameters
/// whose stored type is converted, and parameters that must be adjacent (Tensor::joined) and are not adjacent in the
/// file. The module's parameters need no values before, see NoInitialization.
void map_parameters(const std::filesystem::path& path, Module& module);
/// The same for these parameters of the module only; `others` are the names of the other tensors that the file must
/// have.
void map_parameters(const SafetensorsReader& reader, Module& module, const std::vector<NamedParameter>& parameters,
                    const std::set<std::string>& others);

}  // namespace attune
