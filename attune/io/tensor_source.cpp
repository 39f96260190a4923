#include "attune/io/tensor_source.h"

#include <set>

#include "attune/base/fail.h"
#include "attune/base/file.h"
#include "attune/io/json_file.h"
#include "attune/io/weight_index.h"

namespace attune {
namespace {

namespace fs = std::filesystem;

const fs::path& path_of(const std::variant<SafetensorsReader, PytorchReader>& file) {
  return std::visit([](const auto& reader) -> const fs::path& { return reader.path(); }, file);
}

}  // namespace

TensorSource::TensorSource(const fs::path& folder) : folder_(folder) {
  open<SafetensorsReader>("model", "safetensors");
  if (files_.empty()) open<PytorchReader>("pytorch_model", "bin");
  if (files_.empty())
    fail<FileError>(
        "{}: has no weights: needs model.safetensors, shards of it with model.safetensors.index.json, or "
        "pytorch_model.bin",
        folder.string());
}

template <class Reader>
void TensorSource::open(const std::string& stem, const std::string& extension) {
  const std::string file = stem + "." + extension;
  const fs::path single = folder_ / file, index = folder_ / (file + ".index.json");
  const auto add_all = [&](Reader reader) {
    const std::vector<std::string> names = reader.names();
    add_file(std::move(reader), names);
  };
  if (is_there(single)) return add_all(Reader(single));
  if (!is_there(index)) {
    for (const fs::path& shard : find_shards(folder_, stem, extension)) add_all(Reader(shard));
    return;
  }
  const std::map<std::string, std::string> weight_map = read_weight_map(index);
  std::set<std::string> shards;
  for (const auto& [name, shard] : weight_map) shards.insert(shard);
  for (const std::string& shard : shards) add_all(Reader(folder_ / shard));
  for (const auto& [name, shard] : weight_map)
    if (!contains(name))
      fail<FileError>("{}: has no tensor {}, {} asks for it", (folder_ / shard).string(), in_quotes(name),
                      index.filename().string());
}

void TensorSource::add(SafetensorsReader file, const std::vector<std::string>& names) {
  for (const std::string& name : names) file_of_.erase(name);
  add_file(std::move(file), names);
}

void TensorSource::add_file(File file, const std::vector<std::string>& names) {
  for (const std::string& name : names)
    if (const auto [other, is_new] = file_of_.emplace(name, files_.size()); !is_new)
      fail<FileError>("{}: tensor {} is in {} too", path_of(file).string(), in_quotes(name),
                      path_of(files_[other->second]).filename().string());
  files_.push_back(std::move(file));
}

std::vector<std::string> TensorSource::names() const {
  std::vector<std::string> names;
  names.reserve(file_of_.size());
  for (const auto& [name, file] : file_of_) names.push_back(name);
  return names;
}

const TensorSource::File& TensorSource::file_with(const std::string& name) const {
  const auto found = file_of_.find(name);
  if (found == file_of_.end()) fail<FileError>("{}: has no tensor {}", folder_.string(), in_quotes(name));
  return files_[found->second];
}

Shape TensorSource::shape(const std::string& name) const {
  return std::visit([&](const auto& reader) { return reader.shape(name); }, file_with(name));
}

DType TensorSource::dtype(const std::string& name) const {
  const StoredType type = std::visit([&](const auto& reader) { return reader.type(name); }, file_with(name));
  return type == StoredType::bf16 ? DType::bf16 : loaded_type(type);
}

const fs::path& TensorSource::file(const std::string& name) const {
  return path_of(file_with(name));
}

int64_t TensorSource::element_count() const {
  int64_t count = 0;
  for (const File& file : files_) count += std::visit([](const auto& reader) { return reader.element_count(); }, file);
  return count;
}

int64_t TensorSource::bfloat16_count() const {
  int64_t count = 0;
  for (const auto& [name, file] : file_of_)
    if (dtype(name) == DType::bf16) count += shape(name).numel();
  return count;
}

Tensor TensorSource::read(const std::string& name, Bfloat16 bfloat16) const {
  const auto read_from = [&](const auto& reader) {
    const StoredType type = reader.type(name);
    if (type == StoredType::bf16 && bfloat16 == Bfloat16::kept) return reader.map_or_copy(name, DType::bf16);
    const Tensor mapped = reader.map(name, loaded_type(type));
    return mapped.defined() ? mapped : reader.load(name);
  };
  return std::visit(read_from, file_with(name));
}

void TensorSource::release_pages(const Tensor& tensor) const {
  for (const File& file : files_) std::visit([&](const auto& reader) { reader.release_pages(tensor); }, file);
}

}  // namespace attune
