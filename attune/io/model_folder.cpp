#include "attune/io/model_folder.h"

#include <set>

#include "attune/base/version.h"
#include "attune/io/safetensors.h"
#include "attune/models/transformer.h"

namespace attune {
namespace {

constexpr const char* kModelType = "transformer";

// Takes a text out of the object. Throws FileError when it is missing or something else.
std::string take_text(Json& json, const char* key, const std::string& where) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_string()) fail<FileError>("{}: needs \"{}\" with a text", where, key);
  const std::string text = found->get<std::string>();
  json.erase(key);
  return text;
}

}  // namespace

void save_parameters(const std::filesystem::path& path, Module& module,
                     const std::map<std::string, std::string>& metadata) {
  std::vector<NamedTensor> tensors;
  for (const NamedParameter& p : named_parameters(module)) tensors.push_back({p.name, p.tensor->detach()});
  write_safetensors(path, tensors, metadata);
}

void load_parameters(const std::filesystem::path& path, Module& module) {
  const SafetensorsReader reader(path);
  const std::vector<NamedParameter> parameters = named_parameters(module);
  std::set<std::string> known;
  for (const auto& [name, tensor] : parameters) {
    if (!reader.contains(name))
      fail<FileError>("{}: has no tensor {}, config.json asks for it", path.string(), in_quotes(name));
    if (reader.shape(name) != tensor->shape())
      fail<FileError>("{}: tensor {} has shape {}, config.json says {}", path.string(), in_quotes(name),
                      reader.shape(name).text(), tensor->shape().text());
    if (reader.dtype(name) != tensor->dtype())
      fail<FileError>("{}: tensor {} is {}, the model is {}", path.string(), in_quotes(name),
                      name_of(reader.dtype(name)), name_of(tensor->dtype()));
    known.insert(name);
  }
  for (const std::string& name : reader.names())
    if (!known.contains(name))
      fail<FileError>("{}: tensor {} is unknown to the model of config.json", path.string(), in_quotes(name));
  for (const auto& [name, tensor] : parameters) reader.load_into(name, *tensor);
}

void write_model_config(const std::filesystem::path& folder, const TransformerConfig& config) {
  Json json = {{"model_type", kModelType}, {"attune_version", kVersion}};
  json.update(write_fields(config));
  write_json_file(folder / kConfigFile, json);
}

TransformerConfig read_model_config(const std::filesystem::path& folder) {
  const std::string where = (folder / kConfigFile).string();
  Json json = read_json_file(where);
  if (!json.is_object()) fail<FileError>("{}: needs an object, found {}", where, json.type_name());
  const std::string type = take_text(json, "model_type", where);
  if (type != kModelType) fail<FileError>("{}: model_type is {}, needs \"{}\"", where, in_quotes(type), kModelType);
  take_text(json, "attune_version", where);
  TransformerConfig config;
  read_fields(json, config, where);
  try {
    config.validate();
  } catch (const ConfigError& error) {
    fail<ConfigError>("{}: {}", where, error.what());
  }
  return config;
}

void check_parameter_file(const std::filesystem::path& folder, const TransformerConfig& config) {
  config.validate();
  const std::filesystem::path path = folder / kParameterFile;
  const int64_t found = SafetensorsReader(path).element_count();
  const int64_t needed = count_parameters(config).total();
  if (found < needed)
    fail<FileError>("{}: holds {} numbers, but config.json (d_model = {}, layers = {}, d_ff = {}, {}) needs {}",
                    path.string(), found, config.d_model, config.layers, config.d_ff,
                    config.architecture == Architecture::encoder_decoder
                        ? fmt::format("vocabularies {} and {}", config.source_vocab, config.target_vocab)
                        : fmt::format("vocabulary {}", config.vocab),
                    needed);
}

}  // namespace attune
