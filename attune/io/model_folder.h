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

/// config.json: "model_type", "attune_version" and the fields of TransformerConfig; of packed weights
/// "quantization_config" too.
void write_model_config(const std::filesystem::path& folder, const TransformerConfig& config,
                        std::optional<WeightFormat> packed = {});

/// What config.json says.
struct ConfigFile {
  TransformerConfig model;
  std::optional<WeightFormat> packed;  // what the weights are packed as, see save_panel_parameters(); else as trained
};

/// Throws FileError or ConfigError; what is returned is valid.
ConfigFile read_config_file(const std::filesystem::path& folder);
TransformerConfig read_model_config(const std::filesystem::path& folder);
std::optional<WeightFormat> read_weight_format(const std::filesystem::path& folder);

/// Throws ConfigError naming the folder and `use` where weights are packed: "training" needs them as they are.
void refuse_panels(const std::filesystem::path& folder, std::string_view use);

/// To be called before the model is built, so that a config.json with absurd sizes asks for no memory. Throws FileError
/// when model.safetensors holds fewer numbers than a model of `config` has, in `packed` if that is given; ConfigError
/// when `config` is not valid.
void check_parameter_file(const std::filesystem::path& folder, const TransformerConfig& config,
                          std::optional<WeightFormat> packed = {});

}  // namespace attune
