#include "attune/io/tensor_source.h"

#include <set>
#include <system_error>

#include "attune/base/fail.h"
#include "attune/io/json_file.h"
#include "attune/io/weight_index.h"

namespace attune {
namespace {

namespace fs = std::filesystem;

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

}  // namespace

TensorSource::TensorSource(const fs::path& folder) : folder_(folder) {
  const fs::path single = folder / "model.safetensors", index = folder / "model.safetensors.index.json";
  std::map<std::string, std::string> weight_map;
  if (is_there(single)) {
    add(single);
  } else if (is_there(index)) {
    weight_map = read_weight_map(index);
    std::set<std::string> shards;
    for (const auto& [name, shard] : weight_map) shards.insert(shard);
    for (const std::string& shard : shards) add(folder / shard);
  } else {
    for (const fs::path& shard : find_shards(folder, "model", "safetensors")) add(shard);
  }
  if (files_.empty())
    fail<FileError>("{}: has no weights: needs model.safetensors or shards with model.safetensors.index.json",
                    folder.string());
  for (const auto& [name, shard] : weight_map)
    if (!contains(name))
      fail<FileError>("{}: has no tensor {}, {} asks for it", (folder / shard).string(), in_quotes(name),
                      index.filename().string());
}

void TensorSource::add(const fs::path& path) {
  files_.emplace_back(path);
  for (const std::string& name : files_.back().names())
    if (const auto [other, is_new] = file_of_.emplace(name, files_.size() - 1); !is_new)
      fail<FileError>("{}: tensor {} is in {} too", path.string(), in_quotes(name),
                      files_[other->second].path().filename().string());
}

std::vector<std::string> TensorSource::names() const {
  std::vector<std::string> names;
  names.reserve(file_of_.size());
  for (const auto& [name, file] : file_of_) names.push_back(name);
  return names;
}

const SafetensorsReader& TensorSource::reader(const std::string& name) const {
  const auto found = file_of_.find(name);
  if (found == file_of_.end()) fail<FileError>("{}: has no tensor {}", folder_.string(), in_quotes(name));
  return files_[found->second];
}

Shape TensorSource::shape(const std::string& name) const {
  return reader(name).shape(name);
}

DType TensorSource::dtype(const std::string& name) const {
  const StoredType type = reader(name).type(name);
  return type == StoredType::bf16 ? DType::bf16 : loaded_type(type);
}

const fs::path& TensorSource::file(const std::string& name) const {
  return reader(name).path();
}

int64_t TensorSource::element_count() const {
  int64_t count = 0;
  for (const SafetensorsReader& file : files_) count += file.element_count();
  return count;
}

Tensor TensorSource::read(const std::string& name, Bfloat16 bfloat16) const {
  const SafetensorsReader& file = reader(name);
  const StoredType type = file.type(name);
  if (type == StoredType::bf16 && bfloat16 == Bfloat16::kept) return file.map_or_copy(name, DType::bf16);
  const Tensor mapped = file.map(name, loaded_type(type));
  return mapped.defined() ? mapped : file.load(name);
}

void TensorSource::release_pages(const Tensor& tensor) const {
  for (const SafetensorsReader& file : files_) file.release_pages(tensor);
}

}  // namespace attune
