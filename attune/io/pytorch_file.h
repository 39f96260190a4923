#pragma once
// pytorch_model.bin: a state dict as torch.save writes it. Since PyTorch 1.6 that is a zip archive with a pickle
// (data.pkl) and a stored entry for each storage (data/KEY); before, five pickles and then the storages.

#include <filesystem>
#include <string>
#include <vector>

#include "attune/io/mapped_tensors.h"
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
class PytorchReader : public MappedTensors<LocatedTensor> {
 public:
  explicit PytorchReader(const std::filesystem::path& path);

  int64_t element_count() const;

  Tensor load(const std::string& name) const;  // a copy
  /// A tensor on the file's own memory where the file has this type, the values stand one after the other and are
  /// aligned, else an undefined tensor. See SafetensorsReader::map.
  Tensor map(const std::string& name, DType dtype) const;
  /// The same, else a copy. Throws FileError where the type differs.
  Tensor map_or_copy(const std::string& name, DType dtype) const;
};

}  // namespace attune
