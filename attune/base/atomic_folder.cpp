#include "attune/base/atomic_folder.h"

#include <string>
#include <system_error>

#include "attune/base/fail.h"
#include "attune/base/file.h"

namespace attune {

AtomicFolder::AtomicFolder(std::filesystem::path path) : path_(std::move(path)) {
  while (!path_.has_filename() && path_.has_relative_path()) path_ = path_.parent_path();  // removes slashes at the end
  if (is_there_or_link(path_))
    fail<FileError>("{}: is there already; remove it or choose another folder", path_.string());
  const std::filesystem::path name = path_.filename();
  if (name.empty() || name == "." || name == "..")
    fail<FileError>("\"{}\" is no name for a folder that is written", path_.string());
  make_directories(path_.parent_path().empty() ? "." : path_.parent_path());
  remove_leftovers(path_.parent_path(), name.string());
  temporary_ = make_temporary_folder(path_);
}

AtomicFolder::~AtomicFolder() {
  std::error_code ignored;
  if (!committed_) std::filesystem::remove_all(temporary_.path, ignored);
}

void AtomicFolder::commit() {
  rename_folder(temporary_.path, path_);
  committed_ = true;
}

}  // namespace attune
