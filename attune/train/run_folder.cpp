#include "attune/train/run_folder.h"

#include <string>
#include <system_error>

#include "attune/base/fail.h"
#include "attune/base/file.h"
#include "attune/base/temporary.h"

namespace attune {
namespace {

namespace fs = std::filesystem;

// Runs of earlier versions have no lock file.
bool is_run(const fs::path& folder) {
  std::error_code ignored;
  return fs::exists(folder / kLockFile, ignored) || fs::is_directory(folder / "checkpoints", ignored) ||
         (fs::exists(folder / "config.toml", ignored) && fs::exists(folder / "metrics.jsonl", ignored));
}

// The folder, which is empty or a run, hidden files aside.
const fs::path& checked(const fs::path& folder) {
  if (is_run(folder)) return folder;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with('.'))
      fail<ConfigError>("{}: has other files in it ({}): a run needs an empty folder, or a new one", folder.string(),
                        name);
  }
  make_directories(folder);
  return folder;
}

}  // namespace

RunFolder::RunFolder(const fs::path& folder) : lock_(checked(folder)) {
  for (const char* part : {"", "best", "model", "checkpoints"}) remove_leftovers(folder / part);
}

}  // namespace attune
