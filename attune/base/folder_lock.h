#pragma once

#include <filesystem>

#include "attune/base/descriptor.h"

namespace attune {

/// The name of the lock file in a folder. It stays there, empty, when nobody has the folder.
inline constexpr const char* kLockFile = "run.lock";

/// Keeps a folder for one process until it ends, however that ends: a lock (flock) on the file run.lock in it, which
/// says who has it, and one on the folder itself, which holds when somebody removes the file. On a file system that has
/// no locks nothing is kept.
class FolderLock {
 public:
  /// Throws FileError naming the process that has the folder, or the file when it cannot be written or has other text.
  /// A run.lock that was made here is removed then.
  explicit FolderLock(const std::filesystem::path& folder);
  ~FolderLock();
  /// Whether there was no run.lock before.
  bool made() const { return made_; }
  /// Whether the folder of this name is still the one that was locked: nobody has removed or renamed it, or put another
  /// in its place.
  bool has_folder() const;
  /// Removes run.lock; the folder stays locked for nobody.
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
