#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "attune/io/safetensors.h"

namespace attune {

/// The tensors of a Hugging Face folder. A tensor is found under the name that its family gives it, and also
///   - without the name of the base model: "h.0.ln_1.weight" for "transformer.h.0.ln_1.weight"
///   - with the names of norms of older files: "LayerNorm.gamma" and "LayerNorm.beta"
class HubTensors {
 public:
  /// `prefix` is the name of the base model with a point: "transformer.". Throws FileError.
  HubTensors(const std::filesystem::path& folder, std::string prefix);

  bool contains(const std::string& name) const { return !stored_name(name).empty(); }
  /// The name in the file; "" if there is no such tensor.
  std::string stored_name(const std::string& name) const;
  std::vector<std::string> stored_names() const { return reader_.names(); }
  int64_t element_count() const { return reader_.element_count(); }
  std::string path() const { return reader_.path().string(); }

  // By the name in the file.

  Shape shape(const std::string& stored) const { return reader_.shape(stored); }
  /// A copy in float32. Throws FileError unless the file has floating-point numbers.
  Tensor load(const std::string& stored) const;
  /// The file's own pages where it has float32, else undefined; see SafetensorsReader::map().
  Tensor map(const std::string& stored) const { return reader_.map(stored, DType::f32); }
  void release_pages(const Tensor& tensor) const { reader_.release_pages(tensor); }

 private:
  SafetensorsReader reader_;
  std::string prefix_;
};

}  // namespace attune
