#pragma once

#include <filesystem>

#include "attune/base/descriptor.h"

namespace attune {

/// The name of the lock file in a folder. It stays there, empty, when nobody has the folder.
inline constexpr const char* kLockFile = "run.lock";

/// Reserves a folder for one process until this object is destroyed or the process ends in any way. It locks (flock)
/// the file run.lock in the folder, which names the owner, and the folder itself, whose lock holds even if somebody
/// removes the file. On a file system without locks nothing is reserved.
class FolderLock {
 public:
  /// Throws FileError that names the process that has the folder, or run.lock if it cannot be written or has other
  /// text. A run.lock that was made here is removed then.
  explicit FolderLock(const std::filesystem::path& folder);
  ~FolderLock();
  /// Whether there was no run.lock before.
  bool made() const { return made_; }
  /// Whether the folder of this name is still the one that was locked: nobody has removed or renamed it, or put another
  /// in its place.
  bool has_folder() const;
  /// Removes run.lock. The lock of the folder itself stays until this object is destroyed.
  void remove();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  bool open();
  void lock_folder();

  std::filesystem::path path_;
  Descriptor file_, folder_;
  bool made_ = false;
};

}  // namespace attune
