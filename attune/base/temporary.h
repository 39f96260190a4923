#pragma once
// Names under which files and folders are written before they get their own: "NAME.<16 hexadecimal digits>.tmp". The
// digits are random, since two processes in two containers may have the same process id. The process that writes such
// an entry holds a lock on it (flock), which ends with the process in any case. An entry without a lock is what a
// killed process left behind.

#include <filesystem>
#include <string_view>

#include "attune/base/descriptor.h"

namespace attune {

struct TemporaryEntry {
  std::filesystem::path path;
  Descriptor descriptor;  // locked; the lock ends when it is closed
};

/// Makes an empty file beside `target`; `mode` is its permissions before the umask. Never opens a file or follows a
/// link that is there. Throws FileError naming `target`.
TemporaryEntry make_temporary_file(const std::filesystem::path& target, unsigned mode);
/// The same for a folder. The folder that it is made in must exist.
TemporaryEntry make_temporary_folder(const std::filesystem::path& target);

/// Returns NAME of "NAME.<16 hexadecimal digits>.tmp", or "" if `name` is no temporary name.
std::string_view target_of_temporary(std::string_view name);

/// Removes what killed processes left in `folder`: temporary entries of this user that nobody has locked. `target`:
/// only those of this name; empty: those of every name. What cannot be removed stays; a folder that is not there is no
/// error.
void remove_leftovers(const std::filesystem::path& folder, std::string_view target = {});

}  // namespace attune
