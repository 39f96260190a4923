#include "attune/base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "attune/base/fail.h"

namespace attune {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return value_; }

 private:
  int value_;
};

[[noreturn]] void fail_errno(std::string_view action, const std::filesystem::path& path) {
  fail<FileError>("cannot {} {}: {}", action, path.string(), std::strerror(errno));
}

// Writes the folder's list of names to the disk, so that a power cut does not lose new names. Ignores a file system
// that cannot do this.
void sync_folder(const std::filesystem::path& path) {
  const Descriptor directory(::open(path.empty() ? "." : path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() >= 0) ::fsync(directory.get());
}

uint64_t size_of_regular_file(int descriptor, const std::filesystem::path& path) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) fail_errno("read", path);
  if (S_ISDIR(status.st_mode)) fail<FileError>("cannot read {}: it is a folder", path.string());
  if (!S_ISREG(status.st_mode)) fail<FileError>("cannot read {}: it is not a regular file", path.string());
  return static_cast<uint64_t>(status.st_size);
}

}  // namespace

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

AtomicFile::AtomicFile(std::filesystem::path path) : path_(std::move(path)) {
  std::error_code ignored;
  const auto status = std::filesystem::status(path_, ignored);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
    fail<FileError>("cannot write {}: it is not a regular file",
                    path_.string());  // a rename would replace a device or a pipe
  if (std::filesystem::is_symlink(path_, ignored)) path_ = std::filesystem::weakly_canonical(path_);
  temporary_ = path_;
  temporary_ += "." + std::to_string(::getpid()) + ".tmp";
  descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor_ < 0) fail_errno("write", path_);
}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(temporary_.c_str());
}

void AtomicFile::write(const void* data, size_t bytes) {
  const char* next = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t n = ::write(descriptor_, next, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_errno("write", path_);
    next += n;
    bytes -= static_cast<size_t>(n);
  }
}

void AtomicFile::commit() {
  if (::fsync(descriptor_) != 0) fail_errno("write", path_);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail_errno("write", path_);
  ::close(descriptor_);
  descriptor_ = -1;
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
  if (address == MAP_FAILED) fail_errno("map", path);
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
  const uintptr_t first = (begin + page - 1) / page * page, last = end / page * page;
  if (first < last) ::madvise(data_ + (first - own), last - first, MADV_DONTNEED);  // a failure loses nothing
}

void make_directories(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) fail<FileError>("cannot make folder {}: {}", path.string(), error.message());
}

void rename_folder(const std::filesystem::path& from, const std::filesystem::path& to) {
  sync_folder(from);
  if (::rename(from.c_str(), to.c_str()) != 0) fail_errno("write", to);
  sync_folder(to.parent_path());
}

}  // namespace attune
