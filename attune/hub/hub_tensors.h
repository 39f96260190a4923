#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "attune/io/tensor_source.h"

namespace attune {

/// Which tensors a folder has, or will have once it is written.
class TensorNames {
 public:
  virtual ~TensorNames() = default;
  virtual bool contains(const std::string& name) const = 0;
};

/// The tensors of a Hugging Face folder. A tensor is found under the name that its family gives it, and also
///   - without the name of the base model: "h.0.ln_1.weight" for "transformer.h.0.ln_1.weight"
///   - with the names of norms of older files: "LayerNorm.gamma" and "LayerNorm.beta"
class HubTensors final : public TensorNames {
 public:
  /// `prefix` is the name of the base model with a point: "transformer.". Throws FileError.
  HubTensors(const std::filesystem::path& folder, std::string prefix);
  /// See TensorSource::add().
  void add(SafetensorsReader file, const std::vector<std::string>& names) { source_.add(std::move(file), names); }

  /// From now on the tensor `from`, which has to be there, is found under `to` and no longer under its own name.
  void move(const std::string& from, const std::string& to);

  bool contains(const std::string& name) const override { return !stored_name(name).empty(); }
  /// The name in the files; "" if there is no such tensor.
  std::string stored_name(const std::string& name) const;
  std::vector<std::string> stored_names() const { return source_.names(); }
  int64_t element_count() const { return source_.element_count(); }
  int64_t bfloat16_count() const { return source_.bfloat16_count(); }
  std::string folder() const { return source_.folder().string(); }

  // By the name in the files.

  std::string file(const std::string& stored) const { return source_.file(stored).string(); }
  Shape shape(const std::string& stored) const { return source_.shape(stored); }
  bool is_bfloat16(const std::string& stored) const { return source_.dtype(stored) == DType::bf16; }
  /// Returns a tensor: bfloat16 where the file has bfloat16 and `bfloat16` says kept, else float32. It lies on the
  /// file's own pages where these have its type, else it is a copy, also of float64. Throws FileError unless the file
  /// has floating-point numbers.
  Tensor read(const std::string& stored, Bfloat16 bfloat16) const;
  /// See TensorSource::release_pages().
  void release_pages(const Tensor& tensor) const { source_.release_pages(tensor); }

 private:
  TensorSource source_;
  std::string prefix_;
  std::string moved_, moved_to_;  // the name in the files, and what it is found under; "": none was moved
};

}  // namespace attune
