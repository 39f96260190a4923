#include "attune/base/folder_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <system_error>

#include "attune/base/fail.h"
#include "attune/base/file.h"

namespace attune {
namespace {

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "an unknown host";
}

constexpr std::string_view kOwner = "process ";  // begins what is in the file

std::string beginning(int descriptor) {
  std::array<char, 512> text{};
  const ssize_t bytes = ::pread(descriptor, text.data(), text.size(), 0);
  return {text.data(), static_cast<size_t>(std::max<ssize_t>(bytes, 0))};
}

// The first line of the file. Anybody may have written it, so only printable ASCII is kept.
std::string owner(int descriptor) {
  std::string line = beginning(descriptor);
  line.resize(std::min(line.find('\n'), line.size()));
  std::replace_if(
      line.begin(), line.end(), [](unsigned char c) { return c < 0x20 || c >= 0x7f; }, '?');
  return line.empty() ? "another process" : line;
}

// Whether the file or folder that is open is still the one of this name. With AT_SYMLINK_NOFOLLOW a link is another.
bool is_at(const std::filesystem::path& path, int descriptor, int flags) {
  struct stat opened {
  }, named{};
  return ::fstat(descriptor, &opened) == 0 && ::fstatat(AT_FDCWD, path.c_str(), &named, flags) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

}  // namespace

// Opens the lock file, or makes it. False: another process made or removed it at this moment.
bool FolderLock::open() {
  constexpr int kFlags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  file_ = Descriptor(::open(path_.c_str(), kFlags));
  made_ = !file_.is_open() && errno == ENOENT;
  if (!made_) return true;
  file_ = Descriptor(::open(path_.c_str(), kFlags | O_CREAT | O_EXCL, 0666));
  return file_.is_open() || errno != EEXIST;
}

FolderLock::FolderLock(const std::filesystem::path& folder) : path_(folder / kLockFile) {
  bool locked = true;
  do {
    while (!open()) continue;
    if (!file_.is_open()) fail<FileError>("cannot write {}: {}", path_.string(), std::strerror(errno));
    locked = ::flock(file_.get(), LOCK_EX | LOCK_NB) == 0;
    if (!locked && errno == EWOULDBLOCK)
      fail<FileError>("{}: is in use by {}: a folder is for one run at a time", folder.string(), owner(file_.get()));
    // The previous owner may have removed the file before it was locked here.
  } while (locked && !is_at(path_, file_.get(), AT_SYMLINK_NOFOLLOW));
  folder_ = Descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (const std::string there = beginning(file_.get()); !there.empty() && !there.starts_with(kOwner))
    fail<FileError>("{}: is no lock file: it has other text in it", path_.string());
  if (!locked) return;
  lock_folder();
  const std::string text = fmt::format("{}{} on {}\n", kOwner, ::getpid(), host_name());
  if (::ftruncate(file_.get(), 0) != 0 ||
      ::pwrite(file_.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    const int error = errno;
    if (made_) remove();
    fail<FileError>("cannot write {}: {}", path_.string(), std::strerror(error));
  }
}

// Throws FileError when another process has the folder although its run.lock was removed. The run.lock that was made
// here is then removed too.
void FolderLock::lock_folder() {
  const std::filesystem::path folder = path_.parent_path();
  if (!folder_.is_open() || ::flock(folder_.get(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
  if (made_) remove();
  fail<FileError>("{}: is in use by another process, whose {} was removed: a folder is for one run at a time",
                  folder.string(), kLockFile);
}

bool FolderLock::has_folder() const {
  const std::filesystem::path folder = path_.parent_path();
  return folder_.is_open() ? is_at(folder, folder_.get(), 0) : is_there(folder);
}

void FolderLock::remove() {
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

FolderLock::~FolderLock() {
  if (::ftruncate(file_.get(), 0) != 0) return;  // harmless: nobody reads the name of an owner that has gone
}

}  // namespace attune
