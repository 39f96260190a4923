#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "attune/base/folder_lock.h"

namespace attune {

/// The files that a run has written in its folder, by name.
inline constexpr const char* kRunFile = "run.json";

/// The folder of a run, locked for one process at a time. Only what the run itself has written there is replaced or
/// removed: run.json lists it, with the digests of the files that are written once.
///
/// A folder is that of a run when it has a run.json, or a checkpoint: runs of earlier versions have no run.json.
class RunFolder {
 public:
  /// Makes the folder, locks it (see FolderLock) and removes what killed processes left there. Removes the folder again
  /// where it cannot be locked. Throws ConfigError when the folder has other files in it and is no run, and when a file
  /// with a name that runs write is not this run's or, before its first checkpoint, was changed; a run with a
  /// checkpoint keeps its tokenizers. Throws FileError when another process has the folder, or when run.json cannot be
  /// read.
  explicit RunFolder(const std::filesystem::path& folder);
  /// Removes the lock and the folder when they were made for a start that has written nothing.
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  /// Throws ConfigError where there are checkpoints, which a new run would replace.
  void refuse_checkpoints() const;
  /// Throws FileError when somebody has removed, renamed or replaced the folder: writing would make a new one, or go to
  /// another, which no run could resume.
  void check_is_there() const;
  /// Lists the file or folder of this name, which is about to be written, as the run's own. Throws ConfigError when
  /// there is one that the run does not own, and as check_is_there().
  void own(const std::string& name);
  /// For a run that begins: removes the log and the best model of one that was killed there before its first
  /// checkpoint. Throws FileError.
  void remove_unfinished();
  /// Writes a file that the run owns from then on. One with a content that the run did not write is set aside: returns
  /// its new path, else an empty one. Throws FileError.
  std::filesystem::path write(const std::string& name, std::string_view text);
  /// Calls `save` with an empty folder and moves the tokenizers that it writes there to the run. Removes others that
  /// the run has written earlier. Throws what `save` throws, FileError, and ConfigError as own().
  void save_tokenizers(const std::function<void(const std::filesystem::path& folder)>& save);

 private:
  using Digests = std::vector<std::string>;  // that the file may have; none: it has no lasting content

  bool is_own(const std::string& name) const;
  bool has_been_changed(const std::string& name) const;
  void own(const std::string& name, const std::string& digest);
  void open();
  void remove_made();
  void adopt();
  void check() const;
  void write_list() const;

  std::filesystem::path folder_;
  std::vector<std::filesystem::path> made_;  // the folder and those above it, the innermost first
  FolderLock lock_;
  bool has_checkpoint_ = false;
  bool writes_ = false;  // true from the first file that is to be written
  std::map<std::string, Digests> files_;
};

}  // namespace attune
