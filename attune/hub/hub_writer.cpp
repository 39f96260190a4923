#include "attune/hub/hub_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>

#include "attune/base/fail.h"
#include "attune/hub/equivalent.h"
#include "attune/hub/hub_folder.h"
#include "attune/hub/parameter_writer.h"
#include "attune/io/config_file.h"
#include "attune/io/json_file.h"
#include "attune/io/parameter_file.h"
#include "attune/ops/linear/precision.h"

namespace attune {
namespace {

namespace fs = std::filesystem;

// Other tensors are written as they are: whole numbers, and float64 unless a type is asked for.
bool is_weight(DType dtype) {
  return dtype == DType::f32 || dtype == DType::bf16;
}

DType written_type(const HubTensor& tensor, const HubWriteOptions& options) {
  return is_weight(tensor.dtype) || tensor.dtype == DType::f64 ? options.dtype.value_or(tensor.dtype) : tensor.dtype;
}

int64_t written_bytes(const HubTensor& tensor, const HubWriteOptions& options) {
  return tensor.shape.numel() * static_cast<int64_t>(size_of(written_type(tensor, options)));
}

Tensor values_of(const HubTensor& tensor, const HubWriteOptions& options) {
  if (options.before_each) options.before_each();
  const Tensor values = tensor.read();
  const DType dtype = written_type(tensor, options);
  if (!is_weight(dtype)) return values;
  const Tensor narrow = values.dtype() == DType::f64 ? values.to(DType::f32) : values;
  return dtype == DType::bf16 ? to_bfloat16(narrow) : to_float32(narrow);
}

// Tensors that follow one another, each part small enough for one file.
std::vector<std::span<const HubTensor>> shards_of(const std::vector<HubTensor>& tensors,
                                                  const HubWriteOptions& options) {
  std::vector<std::span<const HubTensor>> shards;
  size_t begin = 0;
  int64_t bytes = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const int64_t more = written_bytes(tensors[i], options);
    if (i > begin && bytes + more > options.shard_bytes) {
      shards.emplace_back(tensors.begin() + static_cast<std::ptrdiff_t>(begin), i - begin);
      begin = i;
      bytes = 0;
    }
    bytes += more;
  }
  shards.emplace_back(tensors.begin() + static_cast<std::ptrdiff_t>(begin), tensors.size() - begin);
  return shards;
}

std::string shard_name(size_t shard, size_t shards) {
  return shards == 1 ? kParameterFile : fmt::format("model-{:05}-of-{:05}.safetensors", shard + 1, shards);
}

// transformers refuses a file whose metadata does not name a framework.
const std::map<std::string, std::string> kMetadata = {{"format", "pt"}};

// Sets "dtype" and its name before transformers 5, "torch_dtype", whichever config.json has; "dtype" if neither.
void put_dtype(Json& config, const WrittenTensors& written) {
  if (!written.dtype) return;
  const char* const name = *written.dtype == DType::bf16 ? "bfloat16" : "float32";
  if (config.contains("torch_dtype")) config["torch_dtype"] = name;
  if (config.contains("dtype") || !config.contains("torch_dtype")) config["dtype"] = name;
}

}  // namespace

WrittenTensors write_hub_tensors(const fs::path& folder, const std::vector<HubTensor>& tensors,
                                 const HubWriteOptions& options) {
  WrittenTensors written;
  bool types_differ = false;
  const std::vector<std::span<const HubTensor>> shards = shards_of(tensors, options);
  std::map<std::string, std::string> weight_map;
  for (size_t i = 0; i < shards.size(); ++i) {
    const std::string file = shard_name(i, shards.size());
    std::vector<NamedTensor> values;
    for (const HubTensor& tensor : shards[i]) {
      const DType dtype = written_type(tensor, options);
      if (is_weight(dtype)) types_differ |= written.dtype.value_or(dtype) != dtype;
      if (is_weight(dtype)) written.dtype = dtype;
      written.numbers += tensor.shape.numel();
      written.bytes += written_bytes(tensor, options);
      weight_map[tensor.name] = file;
      values.push_back({tensor.name, values_of(tensor, options)});
    }
    write_safetensors(folder / file, values, kMetadata);
  }
  if (types_differ) written.dtype.reset();
  if (shards.size() > 1)
    write_json_file(folder / (std::string(kParameterFile) + ".index.json"),
                    {{"metadata", {{"total_size", written.bytes}}}, {"weight_map", weight_map}});
  return written;
}

WrittenTensors write_hub_model(const fs::path& folder, Module& model, const TransformerConfig& config,
                               const HubForm& form, const HubWriteOptions& options) {
  const bool same = differences(config, form.model).empty();
  const std::unique_ptr<Module> bridged = same ? nullptr : equivalent_model(model, config, form.model);
  const ParameterWriter writer(bridged ? *bridged : model, form.names);
  std::vector<HubTensor> tensors;
  for (const WrittenTensor& tensor : writer.tensors())
    tensors.push_back({.name = tensor.name, .shape = tensor.shape, .dtype = DType::f32, .read = [&writer, &tensor] {
                         return writer.values_of(tensor);
                       }});
  const WrittenTensors written = write_hub_tensors(folder, tensors, options);
  Json json = form.config;
  put_dtype(json, written);
  write_json_file(folder / kConfigFile, json);
  const std::vector<FieldDifference> changed = differences(form.model, HubFolder(folder).config());
  if (!changed.empty())
    fail<FileError>("{}: {} is read back with another value", folder.string(), changed.front().field);
  return written;
}

WrittenTensors copy_hub_model(const fs::path& from, const fs::path& folder, const HubWriteOptions& options) {
  const TensorSource source(from);
  std::vector<HubTensor> tensors;
  for (const std::string& name : source.names())
    tensors.push_back({.name = name, .shape = source.shape(name), .dtype = source.dtype(name), .read = [&source, name] {
                         return source.read(name);
                       }});
  const WrittenTensors written = write_hub_tensors(folder, tensors, options);
  Json config = read_json_file(from / kConfigFile);
  put_dtype(config, written);
  write_json_file(folder / kConfigFile, config);
  return written;
}

}  // namespace attune
