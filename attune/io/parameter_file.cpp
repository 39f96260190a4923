#include "attune/io/parameter_file.h"

#include <algorithm>
#include <string_view>

#include "attune/base/fail.h"
#include "attune/io/json_file.h"
#include "attune/nn/adapters/adapters.h"
#include "attune/nn/adjacent_runs.h"
#include "attune/nn/make_panels.h"

namespace attune {
namespace {

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

}  // namespace

SafetensorsReader open_parameters(const std::filesystem::path& path) {
  constexpr std::string_view kOld = ".gain", kNew = ".weight";
  SafetensorsReader reader(path);
  for (const std::string& name : reader.names()) {
    if (!name.ends_with(kOld)) continue;
    const std::string today = name.substr(0, name.size() - kOld.size()).append(kNew);
    if (!reader.contains(today)) reader.rename(name, today);
  }
  return reader;
}

void save_parameters(const std::filesystem::path& path, Module& module,
                     const std::map<std::string, std::string>& metadata, const std::function<void()>& before_each) {
  std::vector<NamedTensor> tensors;
  for (AdaptedParameter& p : adapted_parameters(module)) tensors.push_back({p.name, p.tensor, std::move(p.later)});
  write_safetensors(path, tensors, metadata, Checksum::none, before_each);
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

}  // namespace attune
