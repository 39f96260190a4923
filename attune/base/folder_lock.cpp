#include "attune/base/folder_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>

#include "attune/base/fail.h"

namespace attune {
namespace {

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "an unknown host";
}

// What the owner has written; the file may be anybody's.
std::string owner(int descriptor) {
  std::array<char, 512> text{};
  const ssize_t bytes = ::pread(descriptor, text.data(), text.size(), 0);
  std::string line(text.data(), static_cast<size_t>(std::max<ssize_t>(bytes, 0)));
  line.resize(std::min(line.find('\n'), line.size()));
  std::replace_if(
      line.begin(), line.end(), [](unsigned char c) { return c < 0x20 || c >= 0x7f; }, '?');
  return line.empty() ? "another process" : line;
}

}  // namespace

FolderLock::FolderLock(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / kLockFile;
  file_ = Descriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666));
  if (!file_.is_open()) fail<FileError>("cannot write {}: {}", path.string(), std::strerror(errno));
  if (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK)
      fail<FileError>("{}: is in use by {}: a folder is for one run at a time", folder.string(), owner(file_.get()));
    return;
  }
  const std::string text = fmt::format("process {} on {}\n", ::getpid(), host_name());
  if (::ftruncate(file_.get(), 0) != 0 ||
      ::pwrite(file_.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
    fail<FileError>("cannot write {}: {}", path.string(), std::strerror(errno));
}

FolderLock::~FolderLock() {
  if (::ftruncate(file_.get(), 0) != 0) return;  // the name of a process that has gone is read by nobody
}

}  // namespace attune
