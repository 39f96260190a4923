#pragma once
// config.json of a model folder: the configuration of the model and the format of its weights.

#include <filesystem>
#include <optional>
#include <string_view>

#include "attune/models/config.h"
#include "attune/ops/linear/panel_weight.h"

namespace [[gnu::visibility("default")]] attune {

inline constexpr const char* kConfigFile = "config.json";
inline constexpr const char* kModelType = "transformer";  // "model_type" of Attune's own folders

/// Writes config.json: "model_type", "attune_version" and the fields of TransformerConfig; where weights are panels of
/// `weight_format`, "quantization_config" too.
void write_model_config(const std::filesystem::path& folder, const TransformerConfig& config,
                        std::optional<WeightFormat> weight_format = {});

/// What config.json says.
struct ConfigFile {
  TransformerConfig model;
  /// How many numbers a folder of the hub has in bfloat16. LoadedWeights says which of them stay so in memory.
  int64_t bfloat16_numbers = 0;
  std::optional<WeightFormat> weight_format;  // of the panels, see docs/file-formats.md; none: weights are matrices
};

/// Returns a valid configuration. Throws FileError or ConfigError.
ConfigFile read_config_file(const std::filesystem::path& folder);
TransformerConfig read_model_config(const std::filesystem::path& folder);
std::optional<WeightFormat> read_weight_format(const std::filesystem::path& folder);

/// Returns the folder of the model of a training run if `given` is the folder of the run, else `given`. Throws
/// ConfigError for a run that has no model yet, naming the best one so far where there is one.
std::string folder_of_model(const std::string& given);

/// Throws ConfigError naming the folder and `use` ("training", which needs matrices) when the folder's weights are
/// panels.
void refuse_panels(const std::filesystem::path& folder, std::string_view use);

/// Throws FileError when model.safetensors holds fewer numbers than a model of `config` has, as panels of the format
/// `weight_format` if that is given; ConfigError when `config` is not valid. Call it before the model is built, so that
/// a config.json with absurd sizes takes no memory.
void check_parameter_file(const std::filesystem::path& folder, const TransformerConfig& config,
                          std::optional<WeightFormat> weight_format = {});

}  // namespace attune
