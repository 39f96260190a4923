#pragma once
// config.json of a model folder: what is built before the parameters are read.

#include <filesystem>
#include <optional>
#include <string_view>

#include "attune/models/config.h"
#include "attune/ops/panel_weight.h"

namespace [[gnu::visibility("default")]] attune {

inline constexpr const char* kConfigFile = "config.json";

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
