#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "attune/base/file.h"
#include "attune/io/safetensors_header.h"
#include "attune/tensor/tensor.h"

namespace [[gnu::visibility("default")]] attune {

/// A mapped file of tensors by name. An `Entry` says where a tensor is in the file; it has a `shape` and a `type`. What
/// takes a name throws FileError when there is no such tensor.
template <class Entry>
class MappedTensors {
 public:
  const std::filesystem::path& path() const { return path_; }
  std::vector<std::string> names() const;  // sorted
  bool contains(const std::string& name) const { return tensors_.contains(name); }
  Shape shape(const std::string& name) const { return find(name).shape; }
  StoredType type(const std::string& name) const { return find(name).type; }
  /// Removes the pages of a mapped tensor from memory until they are read again. What was written to them is lost.
  /// Other tensors stay as they are.
  void release_pages(const Tensor& tensor) const;

 protected:
  /// Maps the file; nothing is read.
  explicit MappedTensors(const std::filesystem::path& path);
  const Entry& find(const std::string& name) const;
  /// The same of a tensor that is stored as `dtype`. Throws FileError where the type differs.
  const Entry& find(const std::string& name, DType dtype) const;

  std::filesystem::path path_;
  std::shared_ptr<const MappedFile> file_;
  std::shared_ptr<Buffer> buffer_;  // on all of the file
  std::map<std::string, Entry> tensors_;
};

}  // namespace attune
