#pragma once
// A folder of a test's own, gone when the test ends.

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "attune/base/fail.h"

namespace attune {

class TemporaryFolder {
 public:
  explicit TemporaryFolder(const std::filesystem::path& parent = std::filesystem::temp_directory_path()) {
    std::string name = (parent / "attune-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) fail<FileError>("cannot make a temporary folder {}", name);
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

/// Where files are kept in memory, for tests that write thousands of them; the usual place where there is none.
inline std::filesystem::path memory_folder() {
  return ::access("/dev/shm", W_OK) == 0 ? std::filesystem::path("/dev/shm") : std::filesystem::temp_directory_path();
}

}  // namespace attune
