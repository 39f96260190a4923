#include "attune/io/model_folder.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "attune/base/fail.h"
#include "attune/base/json_fields.h"
#include "attune/base/version.h"
#include "attune/io/json_file.h"
#include "attune/io/parameter_file.h"
#include "attune/io/safetensors.h"
#include "attune/models/transformer.h"
#include "attune/nn/make_panels.h"

namespace attune {
namespace {

constexpr const char* kModelType = "transformer";
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

// `known` is what else may be in the file.
void check_parameters(const SafetensorsReader& reader, const std::vector<NamedParameter>& parameters,
                      std::set<std::string> known = {}) {
  const std::string path = reader.path().string();
  for (const auto& [name, tensor] : parameters) {
    if (!reader.contains(name)) fail<FileError>("{}: has no tensor {}, config.json asks for it", path, in_quotes(name));
    if (reader.shape(name) != tensor->shape())
      fail<FileError>("{}: tensor {} has shape {}, config.json says {}", path, in_quotes(name),
                      reader.shape(name).text(), tensor->shape().text());
    if (reader.dtype(name) != tensor->dtype())
      fail<FileError>("{}: tensor {} is {}, the model is {}", path, in_quotes(name), name_of(reader.dtype(name)),
                      name_of(tensor->dtype()));
    known.insert(name);
  }
  for (const std::string& name : reader.names())
    if (!known.contains(name))
      fail<FileError>("{}: tensor {} is unknown to the model of config.json", path, in_quotes(name));
}

// Parameters in groups, in each of which one follows the other in memory.
std::vector<std::vector<NamedParameter>> adjacent_runs(const std::vector<NamedParameter>& parameters) {
  std::map<const void*, size_t> run_of_end;
  std::vector<std::vector<NamedParameter>> runs;
  for (const NamedParameter& p : parameters) {
    const auto* begin = static_cast<const std::byte*>(p.tensor->address());
    const auto before = run_of_end.find(begin);
    size_t run = runs.size();
    if (before != run_of_end.end() &&
        Tensor::joined(std::array{*runs[before->second].back().tensor, *p.tensor}).defined()) {
      run = before->second;
      run_of_end.erase(before);
    } else {
      runs.emplace_back();
    }
    runs[run].push_back(p);
    if (p.tensor->bytes() > 0) run_of_end[begin + p.tensor->bytes()] = run;
  }
  return runs;
}

}  // namespace

void save_parameters(const std::filesystem::path& path, Module& module,
                     const std::map<std::string, std::string>& metadata) {
  std::vector<NamedTensor> tensors;
  for (const NamedParameter& p : named_parameters(module)) tensors.push_back({p.name, p.tensor->detach()});
  write_safetensors(path, tensors, metadata);
}

void load_parameters(const std::filesystem::path& path, Module& module) {
  const SafetensorsReader reader = open_parameters(path);
  const std::vector<NamedParameter> parameters = named_parameters(module);
  check_parameters(reader, parameters);
  drop_panels(module);  // of what was there
  for (const auto& [name, tensor] : parameters) reader.load_into(name, *tensor);
}

void map_parameters(const std::filesystem::path& path, Module& module) {
  map_parameters(open_parameters(path), module, named_parameters(module), {});
}

void map_parameters(const SafetensorsReader& reader, Module& module, const std::vector<NamedParameter>& parameters,
                    const std::set<std::string>& others) {
  check_parameters(reader, parameters, others);
  std::map<std::string, Tensor> mapped;
  for (const std::vector<NamedParameter>& run : adjacent_runs(parameters)) {
    std::vector<Tensor> parts;
    for (const NamedParameter& p : run) parts.push_back(reader.map(p.name, p.tensor->dtype()));
    const bool all = std::ranges::all_of(parts, &Tensor::defined);
    if (all && (parts.size() == 1 || Tensor::joined(parts).defined())) {
      for (size_t i = 0; i < run.size(); ++i) mapped.emplace(run[i].name, parts[i]);
    } else {
      for (size_t i = 0; i < run.size(); ++i) {
        reader.load_into(run[i].name, *run[i].tensor);
        reader.release_pages(parts[i]);  // nothing where it is undefined
      }
    }
  }
  replace_parameters(module, [&](const NamedParameter& p) {
    const auto found = mapped.find(p.name);
    return found == mapped.end() ? Tensor{} : found->second;
  });
}

void write_model_config(const std::filesystem::path& folder, const TransformerConfig& config,
                        std::optional<WeightFormat> packed) {
  Json json = {{"model_type", kModelType}, {"attune_version", version()}};
  json.update(write_fields(config));
  if (packed) json[kQuantization] = write_fields(QuantizationConfig{.weights = *packed});
  write_json_file(folder / kConfigFile, json);
}

ConfigFile read_config_file(const std::filesystem::path& folder) {
  const std::string where = (folder / kConfigFile).string();
  Json json = read_json_file(where);
  if (!json.is_object()) fail<FileError>("{}: needs an object, found {}", where, json.type_name());
  const std::string type = take_text(json, "model_type", where);
  if (type != kModelType) fail<FileError>("{}: model_type is {}, needs \"{}\"", where, in_quotes(type), kModelType);
  take_text(json, "attune_version", where);
  ConfigFile file;
  file.packed = take_quantization(json, where);
  read_fields(json, file.model, where);
  try {
    file.model.validate();
  } catch (const ConfigError& error) {
    fail<ConfigError>("{}: {}", where, error.what());
  }
  return file;
}

TransformerConfig read_model_config(const std::filesystem::path& folder) {
  return read_config_file(folder).model;
}

std::optional<WeightFormat> read_weight_format(const std::filesystem::path& folder) {
  return read_config_file(folder).packed;
}

void refuse_panels(const std::filesystem::path& folder, std::string_view use) {
  if (const std::optional<WeightFormat> packed = read_weight_format(folder))
    fail<ConfigError>("{}: its weights are packed as {}; {} needs the model that it was made from", folder.string(),
                      enum_name(*packed), use);
}

void check_parameter_file(const std::filesystem::path& folder, const TransformerConfig& config,
                          std::optional<WeightFormat> packed) {
  config.validate();
  const std::filesystem::path path = folder / kParameterFile;
  const int64_t numbers_of_a_byte = packed == WeightFormat::int4 ? 2 : 1;
  const int64_t found = SafetensorsReader(path).element_count() * numbers_of_a_byte;
  const int64_t needed = count_parameters(config).total();
  if (found < needed)
    fail<FileError>("{}: holds {}{} numbers, but config.json (d_model = {}, layers = {}, d_ff = {}, {}) needs {}",
                    path.string(), packed ? "at most " : "", found, config.d_model, config.layers, config.d_ff,
                    config.architecture == Architecture::encoder_decoder
                        ? fmt::format("vocabularies {} and {}", config.source_vocab, config.target_vocab)
                        : fmt::format("vocabulary {}", config.vocab),
                    needed);
}

}  // namespace attune
