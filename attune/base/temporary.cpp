#include "attune/base/temporary.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "attune/base/fail.h"

namespace attune {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".tmp";
constexpr size_t kDigits = 16;

[[noreturn]] void fail_to_write(const fs::path& target) {
  fail<FileError>("cannot write {}: {}", target.string(), std::strerror(errno));
}

fs::path random_name(const fs::path& target) {
  uint64_t number = 0;
  while (::getrandom(&number, sizeof(number), 0) != sizeof(number))
    if (errno != EINTR) fail_to_write(target);
  fs::path name = target;
  name += fmt::format(".{:016x}{}", number, kSuffix);
  return name;
}

// Locks a new entry. Returns false if another process has taken it for a leftover and removes it. On a file system
// without locks the entry has none; then no process takes it for a leftover either, see lock_leftover().
bool lock(const TemporaryEntry& entry) {
  if (::flock(entry.descriptor.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return false;
  struct stat named {};
  return ::lstat(entry.path.c_str(), &named) == 0 || errno != ENOENT;
}

bool is_temporary(std::string_view name, std::string_view target) {
  const std::string_view found = target_of_temporary(name);
  return !found.empty() && (target.empty() || found == target);
}

// Locks an entry that a killed process left behind, and returns it. The caller keeps it open until the entry is
// removed, so that a process which has just made the entry notices it, see lock(). Returns a descriptor that is not
// open if another process writes the entry, or if it is no file or folder of this user.
Descriptor lock_leftover(const fs::path& path) {
  Descriptor entry(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status {};
  if (!entry.is_open() || ::fstat(entry.get(), &status) != 0) return Descriptor();
  const bool ours = (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode)) && status.st_uid == ::geteuid();
  return ours && ::flock(entry.get(), LOCK_EX | LOCK_NB) == 0 ? std::move(entry) : Descriptor();
}

}  // namespace

std::string_view target_of_temporary(std::string_view name) {
  if (!name.ends_with(kSuffix)) return {};
  name.remove_suffix(kSuffix.size());
  if (name.size() < kDigits + 2) return {};  // a name, a dot and the digits
  const std::string_view digits = name.substr(name.size() - kDigits);
  if (digits.find_first_not_of("0123456789abcdef") != std::string_view::npos) return {};
  name.remove_suffix(kDigits);
  if (!name.ends_with('.')) return {};
  name.remove_suffix(1);
  return name;
}

TemporaryEntry make_temporary_file(const fs::path& target, unsigned mode) {
  for (;;) {
    TemporaryEntry entry{.path = random_name(target), .descriptor = Descriptor()};
    entry.descriptor =
        Descriptor(::open(entry.path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
    if (!entry.descriptor.is_open() && errno == EEXIST) continue;
    if (!entry.descriptor.is_open()) fail_to_write(target);
    if (lock(entry)) return entry;
  }
}

TemporaryEntry make_temporary_folder(const fs::path& target) {
  for (;;) {
    TemporaryEntry entry{.path = random_name(target), .descriptor = Descriptor()};
    if (::mkdir(entry.path.c_str(), 0777) != 0) {
      if (errno == EEXIST) continue;
      fail_to_write(target);
    }
    entry.descriptor = Descriptor(::open(entry.path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!entry.descriptor.is_open() && errno == ENOENT) continue;
    if (!entry.descriptor.is_open()) fail_to_write(target);
    if (lock(entry)) return entry;
  }
}

void remove_leftovers(const fs::path& folder, std::string_view target) {
  std::error_code error;
  for (fs::directory_iterator entry(folder.empty() ? "." : folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    if (!is_temporary(entry->path().filename().string(), target)) continue;
    if (const Descriptor locked = lock_leftover(entry->path()); locked.is_open())
      fs::remove_all(entry->path(), ignored);
  }
}

}  // namespace attune
