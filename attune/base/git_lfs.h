#pragma once
// Files that Git has not fetched.

#include <string_view>

#include "attune/base/fail.h"

namespace attune {

/// Throws FileError that begins with `name` where the file is what Git LFS puts in the place of a large file until that
/// is fetched: three lines with its size and digest. Other errors would say that the file is damaged.
inline void check_is_fetched(std::string_view file, std::string_view name) {
  if (file.starts_with("version https://git-lfs.github.com/spec/v1"))
    fail<FileError>("{}: is a pointer of Git LFS, not the file itself: run \"git lfs pull\"", name);
}

}  // namespace attune
