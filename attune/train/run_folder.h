#pragma once

#include <filesystem>

#include "attune/base/folder_lock.h"

namespace attune {

/// The folder of a run, kept for one process at a time.
class RunFolder {
 public:
  /// Makes the folder, locks it (see FolderLock) and removes what killed processes left there. Throws ConfigError when
  /// it has something in it and is no run: what a run writes would replace the files of somebody else. Throws FileError
  /// when another process has it.
  explicit RunFolder(const std::filesystem::path& folder);

 private:
  FolderLock lock_;
};

}  // namespace attune
