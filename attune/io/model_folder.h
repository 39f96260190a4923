#pragma once
// A model is a folder, as on the Hugging Face hub: config.json, model.safetensors, generation_config.json and the
// tokenizers' files, which their own classes write.

#include <filesystem>
#include <map>
#include <string>

#include "attune/io/json_file.h"
#include "attune/models/config.h"
#include "attune/nn/module.h"

namespace attune {

inline constexpr const char* kConfigFile = "config.json";
inline constexpr const char* kParameterFile = "model.safetensors";
inline constexpr const char* kGenerationConfigFile = "generation_config.json";

/// Every parameter of the module under its name, a shared one once. Throws FileError.
void save_parameters(const std::filesystem::path& path, Module& module,
                     const std::map<std::string, std::string>& metadata = {});

/// Fills every parameter of the module. Each must be there with its shape and dtype, and nothing else may be: FileError
/// names the first that is missing, unknown or different, and the module is then as it was.
void load_parameters(const std::filesystem::path& path, Module& module);

/// config.json: "model_type", "attune_version" and the fields of TransformerConfig.
void write_model_config(const std::filesystem::path& folder, const TransformerConfig& config);

/// Throws FileError or ConfigError; what is returned is valid.
TransformerConfig read_model_config(const std::filesystem::path& folder);

/// To be called before the model is built, so that a config.json with absurd sizes asks for no memory. Throws FileError
/// when model.safetensors holds fewer numbers than a model of `config` has, ConfigError when `config` is not valid.
void check_parameter_file(const std::filesystem::path& folder, const TransformerConfig& config);

}  // namespace attune
