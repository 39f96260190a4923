#pragma once

#include <filesystem>

namespace attune {

/// A folder that is there whole or not at all: it is filled under another name beside it, which is gone when this goes
/// away before commit(). Throws FileError.
class AtomicFolder {
 public:
  /// Throws FileError when there is something at `path` already.
  explicit AtomicFolder(std::filesystem::path path);
  ~AtomicFolder();
  AtomicFolder(const AtomicFolder&) = delete;
  AtomicFolder& operator=(const AtomicFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  const std::filesystem::path& temporary() const { return temporary_; }  // where files are written
  void commit();

 private:
  std::filesystem::path path_, temporary_;
  bool committed_ = false;
};

}  // namespace attune
