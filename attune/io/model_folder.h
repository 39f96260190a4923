#pragma once
// A model is a folder, as on the Hugging Face hub: config.json, model.safetensors, generation_config.json and the
// tokenizers' files, which their own classes write.

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "attune/io/safetensors.h"
#include "attune/models/config.h"
#include "attune/nn/module.h"
#include "attune/ops/panel_weight.h"

namespace [[gnu::visibility("default")]] attune {

inline constexpr const char* kConfigFile = "config.json";
inline constexpr const char* kParameterFile = "model.safetensors";
inline constexpr const char* kGenerationConfigFile = "generation_config.json";

/// Writes every parameter of the module under its name, a shared one once. Throws FileError.
void save_parameters(const std::filesystem::path& path, Module& module,
                     const std::map<std::string, std::string>& metadata = {});

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

/// Writes config.json: "model_type", "attune_version" and the fields of TransformerConfig; where weights are panels of
/// the format `packed`, "quantization_config" too.
void write_model_config(const std::filesystem::path& folder, const TransformerConfig& config,
                        std::optional<WeightFormat> packed = {});

/// What config.json says.
struct ConfigFile {
  TransformerConfig model;
  std::optional<WeightFormat> packed;  // format of the panels, see save_panel_parameters(); none: matrices
};

/// Returns a valid configuration. Throws FileError or ConfigError.
ConfigFile read_config_file(const std::filesystem::path& folder);
TransformerConfig read_model_config(const std::filesystem::path& folder);
std::optional<WeightFormat> read_weight_format(const std::filesystem::path& folder);

/// Throws ConfigError naming the folder and `use` ("training", which needs matrices) when the folder's weights are
/// panels.
void refuse_panels(const std::filesystem::path& folder, std::string_view use);

/// Throws FileError when model.safetensors holds fewer numbers than a model of `config` has, as panels of the format
/// `packed` if that is given; ConfigError when `config` is not valid. Call it before the model is built, so that a
/// config.json with absurd sizes takes no memory.
void check_parameter_file(const std::filesystem::path& folder, const TransformerConfig& config,
                          std::optional<WeightFormat> packed = {});

}  // namespace attune
