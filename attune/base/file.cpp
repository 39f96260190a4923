#include "attune/base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "attune/base/address_space.h"
#include "attune/base/descriptor.h"
#include "attune/base/fail.h"
#include "attune/base/rounding.h"
#include "attune/base/temporary.h"

namespace attune {
namespace {

[[noreturn]] void fail_errno(std::string_view action, const std::filesystem::path& path) {
  fail<FileError>("cannot {} {}: {}", action, path.string(), std::strerror(errno));
}

// If memory runs out here, the usual cause is a limit of the address space.
[[noreturn]] void fail_map(const std::filesystem::path& path, size_t bytes) {
  const std::optional<int64_t> limit = errno == ENOMEM ? address_space_limit() : std::nullopt;
  if (!limit) fail_errno("map", path);
  fail<FileError>("cannot map {}: its {} bytes do not fit; the address space is limited to {} bytes (ulimit -v)",
                  path.string(), bytes, *limit);
}

// Writes the folder's list of names to the disk, so that a power cut does not lose new names. Ignores a file system
// that cannot do this.
void sync_folder(const std::filesystem::path& path) {
  const Descriptor directory(::open(path.empty() ? "." : path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() >= 0) ::fsync(directory.get());
}

// A pipe is opened as a shell opens it: the call waits until somebody reads.
Descriptor open_to_write(const std::filesystem::path& path) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
  if (!file.is_open()) fail_errno("write", path);
  return file;
}

// The file that a link leads to, which need not be there (weakly_canonical() would return the link itself). The links
// must not lead back to themselves: stat() fails for these.
std::filesystem::path behind_links(std::filesystem::path path) {
  std::error_code error;
  while (std::filesystem::is_symlink(path, error)) {
    const std::filesystem::path target = std::filesystem::read_symlink(path, error);
    if (error) fail<FileError>("cannot write {}: {}", path.string(), error.message());
    path = path.parent_path() / target;  // an absolute target replaces the parent
  }
  return path;
}

uint64_t size_of_regular_file(int descriptor, const std::filesystem::path& path) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) fail_errno("read", path);
  if (S_ISDIR(status.st_mode)) fail<FileError>("cannot read {}: it is a folder", path.string());
  if (!S_ISREG(status.st_mode)) fail<FileError>("cannot read {}: it is not a regular file", path.string());
  return static_cast<uint64_t>(status.st_size);
}

}  // namespace

bool is_there(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

bool is_there_or_link(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::exists(std::filesystem::symlink_status(path, ignored));
}

std::string_view standard_stream(const std::filesystem::path& path) {
  if (path == "-") return "standard output";
  struct stat file {
  }, stream{};
  if (::stat(path.c_str(), &file) != 0 || !S_ISREG(file.st_mode)) return {};
  for (const auto& [descriptor, name] :
       {std::pair{STDOUT_FILENO, "standard output"}, std::pair{STDERR_FILENO, "standard error"}})
    if (::fstat(descriptor, &stream) == 0 && stream.st_dev == file.st_dev && stream.st_ino == file.st_ino) return name;
  return {};
}

int64_t file_bytes(const std::filesystem::path& path) {
  std::error_code error;
  const uintmax_t bytes = std::filesystem::file_size(path, error);
  if (error) fail<FileError>("cannot read {}: {}", path.string(), error.message());
  return static_cast<int64_t>(bytes);
}

std::string read_file(const std::filesystem::path& path, uint64_t max_bytes) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) fail_errno("open", path);
  const uint64_t size = size_of_regular_file(file.get(), path);
  if (size > max_bytes)
    fail<FileError>("{}: has {} bytes, at most {} are accepted here", path.string(), size, max_bytes);
  std::string text(size, '\0');
  size_t done = 0;
  while (done < size) {
    const ssize_t n = ::read(file.get(), text.data() + done, size - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_errno("read", path);
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  text.resize(done);
  return text;
}

struct AtomicFile::Opened {
  TemporaryEntry entry;  // without a path: a device or a pipe, which is written to directly
};

AtomicFile::AtomicFile(std::filesystem::path path) : path_(std::move(path)) {
  if (const std::string_view stream = standard_stream(path_); !stream.empty())
    fail<FileError>("cannot write {}: it is {}, and a file is replaced", path_.string(), stream);
  struct stat old {};
  const bool replaces = ::stat(path_.c_str(), &old) == 0;
  if (!replaces && errno != ENOENT) fail_errno("write", path_);
  if (replaces && (S_ISCHR(old.st_mode) || S_ISFIFO(old.st_mode))) {  // a rename would replace it
    opened_ = std::make_unique<Opened>(Opened{{.path = {}, .descriptor = open_to_write(path_)}});
    return;
  }
  if (replaces && !S_ISREG(old.st_mode)) fail<FileError>("cannot write {}: it is not a regular file", path_.string());
  path_ = behind_links(std::move(path_));
  if (!path_.has_filename()) fail<FileError>("cannot write \"{}\": it names no file", path_.string());
  remove_leftovers(path_.parent_path(), path_.filename().string());
  // A file that others may not read must not become readable, not even while it is written.
  opened_ = std::make_unique<Opened>(Opened{make_temporary_file(path_, replaces ? 0600 : 0666)});
  if (replaces) ::fchmod(opened_->entry.descriptor.get(), old.st_mode & 0777);  // some file systems have none
}

AtomicFile::~AtomicFile() {
  if (opened_ != nullptr && !opened_->entry.path.empty()) ::unlink(opened_->entry.path.c_str());
}

void AtomicFile::write(const void* data, size_t bytes) {
  const char* next = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t n = ::write(opened_->entry.descriptor.get(), next, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_errno("write", path_);
    next += n;
    bytes -= static_cast<size_t>(n);
  }
}

void AtomicFile::commit() {
  const TemporaryEntry& entry = opened_->entry;
  if (entry.path.empty()) return opened_.reset();
  if (::fsync(entry.descriptor.get()) != 0) fail_errno("write", path_);
  if (::rename(entry.path.c_str(), path_.c_str()) != 0) fail_errno("write", path_);
  opened_.reset();
  sync_folder(path_.parent_path());
}

void write_file(const std::filesystem::path& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

MappedFile::MappedFile(const std::filesystem::path& path, FileAccess access) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) fail_errno("open", path);
  size_ = size_of_regular_file(file.get(), path);
  if (size_ == 0) return;
  // MAP_NORESERVE: few pages are ever written, so the system need not reserve memory for all of them.
  const bool writable = access == FileAccess::copy_on_write;
  void* address = ::mmap(nullptr, size_, writable ? PROT_READ | PROT_WRITE : PROT_READ,
                         writable ? MAP_PRIVATE | MAP_NORESERVE : MAP_PRIVATE, file.get(), 0);
  if (address == MAP_FAILED) fail_map(path, size_);
  data_ = static_cast<std::byte*>(address);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

void MappedFile::release(std::span<const std::byte> part) const {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto own = reinterpret_cast<uintptr_t>(data_);
  const uintptr_t begin = std::max(reinterpret_cast<uintptr_t>(part.data()), own);
  const uintptr_t end = std::min(reinterpret_cast<uintptr_t>(part.data()) + part.size(), own + size_);
  const uintptr_t first = round_up(begin, page), last = end / page * page;
  if (first < last) ::madvise(data_ + (first - own), last - first, MADV_DONTNEED);  // a failure loses nothing
}

void make_directories(const std::filesystem::path& path) {
  std::vector<std::filesystem::path> parents;  // of the folders that are made
  std::error_code error;
  for (std::filesystem::path p = path; !p.empty() && !std::filesystem::exists(p, error); p = p.parent_path())
    parents.push_back(p.parent_path());
  std::filesystem::create_directories(path, error);
  if (error) fail<FileError>("cannot make folder {}: {}", path.string(), error.message());
  for (const std::filesystem::path& parent : parents) sync_folder(parent);
}

void rename_folder(const std::filesystem::path& from, const std::filesystem::path& to) {
  sync_folder(from);
  if (::rename(from.c_str(), to.c_str()) != 0) fail_errno("write", to);
  sync_folder(to.parent_path());
}

}  // namespace attune
