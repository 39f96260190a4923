#pragma once
// Tensors by name in one file: eight bytes of header length (little-endian), a JSON header, the data.
// Source: https://github.com/huggingface/safetensors, section "Format".

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "attune/io/mapped_tensors.h"
#include "attune/io/safetensors_header.h"
#include "attune/tensor/later_tensor.h"
#include "attune/tensor/tensor.h"

namespace [[gnu::visibility("default")]] attune {

/// A mapped file; nothing is read until asked for. F16 and BF16 are converted to float32, BOOL is read as uint8. Throws
/// FileError naming file, tensor, expected and found; a hostile file costs no more memory than its own size allows.
class SafetensorsReader : public MappedTensors<StoredTensor> {
 public:
  explicit SafetensorsReader(const std::filesystem::path& path);

  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  DType dtype(const std::string& name) const { return loaded_type(type(name)); }  // of what load() gives
  int64_t element_count() const;                                                  // over all tensors
  /// Renames a tensor in this reader, not in the file. Throws FileError when there is no `from`, or a `to` already.
  void rename(const std::string& from, const std::string& to);

  Tensor load(const std::string& name) const;  // a copy
  /// Returns a tensor on the file's own memory where the file has this type and the values are aligned, else an
  /// undefined tensor. Such a tensor keeps the file mapped. Writing to it copies the pages: the file stays as it is.
  /// Tensors that follow one another in the file may be Tensor::joined.
  Tensor map(const std::string& name, DType dtype) const;
  /// The same, but a copy where values are not aligned (to `alignment` bytes). Throws FileError where the type differs.
  Tensor map_or_copy(const std::string& name, DType dtype, size_t alignment = 1) const;
  /// Reads all of the file. Throws FileError when its content is not what was written; does nothing for a file that was
  /// written without a Checksum.
  void verify() const;
  /// Fills `target`, which must have the tensor's shape and dtype().
  void load_into(const std::string& name, const Tensor& target) const;

 private:
  std::span<const std::byte> data_;
  std::map<std::string, std::string> metadata_;
};

/// Whether a file says what its content is, for SafetensorsReader::verify().
enum class Checksum {
  none,
  sha256  // metadata "sha256": the digest of header and data, see docs/file-formats.md
};

struct NamedTensor {
  std::string name;
  Tensor tensor;
  std::optional<LaterTensor> later = {};  // in place of `tensor`: made when it is written, twice with a Checksum

  const Shape& shape() const { return later ? later->shape : tensor.shape(); }
  DType dtype() const { return later ? later->dtype : tensor.dtype(); }
  size_t bytes() const { return static_cast<size_t>(shape().numel()) * size_of(dtype()); }
  Tensor values() const { return later ? later->make() : tensor; }
};

/// Replaces `path` whole or not at all. The data begins at a multiple of 64 bytes, and so does every tensor whose bytes
/// are a multiple of 64; the others begin at a multiple of their element size. Tensors that follow one another in
/// memory (Tensor::rows of one) do so in the file, as far as that allows. Calls `before_each` before it writes a
/// tensor; when that throws, nothing is left. Throws FileError, also for a name that comes twice and for text that is
/// not UTF-8.
void write_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                       const std::map<std::string, std::string>& metadata = {}, Checksum checksum = Checksum::none,
                       const std::function<void()>& before_each = {});

}  // namespace attune
