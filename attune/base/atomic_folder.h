#pragma once

#include <filesystem>

#include "attune/base/temporary.h"

namespace attune {

/// Writes a folder whole or not at all. Files are written into a temporary folder beside it; commit() renames that
/// folder. The destructor removes the temporary folder if commit() was not called. The constructor also removes
/// temporary folders that killed processes left for the same `path`. Throws FileError.
class AtomicFolder {
 public:
  /// Throws FileError if `path` already exists or has no name of its own, as "" and "new/.".
  explicit AtomicFolder(std::filesystem::path path);
  ~AtomicFolder();
  AtomicFolder(const AtomicFolder&) = delete;
  AtomicFolder& operator=(const AtomicFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  const std::filesystem::path& temporary() const { return temporary_.path; }  // where files are written
  void commit();

 private:
  std::filesystem::path path_;
  TemporaryEntry temporary_;
  bool committed_ = false;
};

}  // namespace attune
