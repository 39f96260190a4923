#pragma once
// The weights of a model folder by name, whichever files hold them.

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "attune/io/pytorch_file.h"
#include "attune/io/safetensors.h"

namespace attune {

/// What reading makes of bfloat16 values.
///   kept      a bfloat16 tensor
///   widened   a float32 tensor
enum class Bfloat16 { kept, widened };

/// Opens the first of these that a folder has; files are mapped, and no tensor is read until it is asked for.
///   model.safetensors
///   the shards that model.safetensors.index.json names, else model-00001-of-0000N.safetensors and so on
///   pytorch_model.bin, or shards of it in the same way; see PytorchReader
/// An index names the shards. The header of a shard says which tensors it has; each tensor that the index names has to
/// be in one of them. Throws FileError naming the file: one is missing or damaged, a tensor is in two shards or in
/// none, a shard lies outside of the folder. A hostile folder costs no more memory than a small multiple of its files.
class TensorSource {
 public:
  explicit TensorSource(const std::filesystem::path& folder);
  /// Adds these tensors of another file, in the place of those that have their names.
  void add(SafetensorsReader file, const std::vector<std::string>& names);

  const std::filesystem::path& folder() const { return folder_; }
  std::vector<std::string> names() const;  // sorted
  bool contains(const std::string& name) const { return file_of_.contains(name); }
  // These throw FileError when there is no such tensor.
  Shape shape(const std::string& name) const;
  /// The type of what read() gives with Bfloat16::kept: float16 is read as float32 and bool as uint8.
  DType dtype(const std::string& name) const;
  /// The file that has the tensor, for messages.
  const std::filesystem::path& file(const std::string& name) const;
  /// The number of elements in all files, including those of tensors that add() has replaced.
  int64_t element_count() const;
  int64_t bfloat16_count() const;  // elements of the tensors in bfloat16

  /// One tensor. It lies on the file's own pages where these hold the values as they are read, else it is a copy.
  /// Writing to it copies the pages: the file stays as it is. The tensor keeps the file mapped.
  Tensor read(const std::string& name, Bfloat16 bfloat16 = Bfloat16::kept) const;
  /// Removes the pages of a tensor that read() gave from memory until they are read again. What was written to them is
  /// lost. A copy stays as it is.
  void release_pages(const Tensor& tensor) const;

 private:
  using File = std::variant<SafetensorsReader, PytorchReader>;
  const File& file_with(const std::string& name) const;
  /// Opens "STEM.EXTENSION" or its shards; nothing where the folder has neither.
  template <class Reader>
  void open(const std::string& stem, const std::string& extension);
  void add_file(File file, const std::vector<std::string>& names);

  std::filesystem::path folder_;
  std::vector<File> files_;
  std::map<std::string, size_t> file_of_;  // tensor -> index in files_
};

}  // namespace attune
