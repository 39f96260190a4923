#pragma once
// pytorch_model.bin: a state dict as torch.save writes it. Since PyTorch 1.6 that is a zip archive with a pickle
// (data.pkl) and a stored entry for each storage (data/KEY); before, five pickles and then the storages.

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "attune/base/file.h"
#include "attune/io/safetensors_header.h"
#include "attune/tensor/tensor.h"

namespace attune {

/// Where a tensor is in the file.
struct LocatedTensor {
  StoredType type = StoredType::f32;
  Shape shape;
  std::vector<int64_t> strides;  // in elements
  uint64_t begin = 0;            // of the first element, in bytes
};

/// A mapped file with the interface of SafetensorsReader. No code of a pickle is run, see read_pickle(). Throws
/// FileError naming file, tensor and what was found, and the command that converts a file that may be sound.
class PytorchReader {
 public:
  explicit PytorchReader(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  std::vector<std::string> names() const;  // sorted
  Shape shape(const std::string& name) const { return find(name).shape; }
  StoredType type(const std::string& name) const { return find(name).type; }
  int64_t element_count() const;

  Tensor load(const std::string& name) const;  // a copy
  /// A tensor on the file's own memory where the file has this type, the values stand one after the other and are
  /// aligned, else an undefined tensor. See SafetensorsReader::map.
  Tensor map(const std::string& name, DType dtype) const;
  /// The same, else a copy. Throws FileError where the type differs.
  Tensor map_or_copy(const std::string& name, DType dtype) const;
  void release_pages(const Tensor& tensor) const;

 private:
  const LocatedTensor& find(const std::string& name) const;

  std::filesystem::path path_;
  std::shared_ptr<const MappedFile> file_;
  std::shared_ptr<Buffer> buffer_;  // on all of the file
  std::map<std::string, LocatedTensor> tensors_;
};

}  // namespace attune
