#include "attune/io/config_file.h"

#include <fmt/format.h>
#include <string>

#include "attune/base/fail.h"
#include "attune/base/file.h"
#include "attune/base/json_fields.h"
#include "attune/base/version.h"
#include "attune/base/with_prefix.h"
#include "attune/io/config_json.h"
#include "attune/io/json_file.h"
#include "attune/io/parameter_file.h"
#include "attune/io/safetensors.h"
#include "attune/models/transformer.h"

namespace attune {
namespace {

constexpr const char* kQuantization = "quantization_config";  // as Hugging Face names it
constexpr const char* kMethod = "attune";

struct QuantizationConfig {
  std::string quant_method = kMethod;
  WeightFormat weights = WeightFormat::float32;
};

template <class FieldVisitor>
void visit_fields(QuantizationConfig& c, FieldVisitor& v) {
  v("quant_method", c.quant_method);
  v("weights", c.weights);
}

// Takes a text out of the object. Throws FileError when it is missing or something else.
std::string take_text(Json& json, const char* key, const std::string& where) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_string()) fail<FileError>("{}: needs \"{}\" with a text", where, key);
  const std::string text = found->get<std::string>();
  json.erase(key);
  return text;
}

std::optional<WeightFormat> take_quantization(Json& json, const std::string& where) {
  const auto found = json.find(kQuantization);
  if (found == json.end()) return std::nullopt;
  QuantizationConfig config{.quant_method = ""};
  read_fields(*found, config, where + "." + kQuantization);
  if (config.quant_method != kMethod)
    fail<ConfigError>("{}.{}.quant_method: is {}, needs \"{}\"", where, kQuantization, in_quotes(config.quant_method),
                      kMethod);
  json.erase(kQuantization);
  return config.weights;
}

}  // namespace

void write_model_config(const std::filesystem::path& folder, const TransformerConfig& config,
                        std::optional<WeightFormat> weight_format) {
  Json json = {{"model_type", kModelType}, {"attune_version", version()}};
  json.update(write_fields(config));
  if (weight_format) json[kQuantization] = write_fields(QuantizationConfig{.weights = *weight_format});
  write_json_file(folder / kConfigFile, json);
}

ConfigFile read_config_file(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / kConfigFile;
  return config_of(read_json_file(path), path.string());
}

ConfigFile config_of(Json json, const std::string& where) {
  if (!json.is_object()) fail<FileError>("{}: needs an object, found {}", where, json.type_name());
  const std::string type = take_text(json, "model_type", where);
  if (type != kModelType) fail<FileError>("{}: model_type is {}, needs \"{}\"", where, in_quotes(type), kModelType);
  take_text(json, "attune_version", where);
  ConfigFile file;
  file.weight_format = take_quantization(json, where);
  read_fields(json, file.model, where);
  with_prefix(where + ": ", [&] { file.model.validate(); });
  return file;
}

TransformerConfig read_model_config(const std::filesystem::path& folder) {
  return read_config_file(folder).model;
}

std::optional<WeightFormat> read_weight_format(const std::filesystem::path& folder) {
  return read_config_file(folder).weight_format;
}

std::string folder_of_model(const std::string& given) {
  const std::filesystem::path run(given);
  if (is_there(run / kConfigFile)) return given;
  if (is_there(run / "model" / kConfigFile)) return (run / "model").string();
  if (!is_there(run / "config.toml")) return given;
  if (is_there(run / "best" / kConfigFile))
    fail<ConfigError>("{}: the run has not ended; {} is its best model so far", given, (run / "best").string());
  fail<ConfigError>("{}: the run has no model yet; attune train --out {} --resume goes on", given, given);
}

void refuse_panels(const std::filesystem::path& folder, std::string_view use) {
  if (const std::optional<WeightFormat> weight_format = read_weight_format(folder))
    fail<ConfigError>("{}: its weights are {} panels; {} needs the model that it was made from", folder.string(),
                      enum_name(*weight_format), use);
}

void check_parameter_file(const std::filesystem::path& folder, const TransformerConfig& config,
                          std::optional<WeightFormat> weight_format) {
  config.validate();
  const std::filesystem::path path = folder / kParameterFile;
  const int64_t numbers_of_a_byte = weight_format == WeightFormat::int4 ? 2 : 1;
  const int64_t found = SafetensorsReader(path).element_count() * numbers_of_a_byte;
  const int64_t needed = count_parameters(config).total();
  if (found < needed)
    fail<FileError>("{}: holds {}{} numbers, but config.json (d_model = {}, layers = {}, d_ff = {}, {}) needs {}",
                    path.string(), weight_format ? "at most " : "", found, config.d_model, config.layers, config.d_ff,
                    config.architecture == Architecture::encoder_decoder
                        ? fmt::format("vocabularies {} and {}", config.source_vocab, config.target_vocab)
                        : fmt::format("vocabulary {}", config.vocab),
                    needed);
}

}  // namespace attune
