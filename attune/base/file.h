#pragma once
// Files: read with a limit, written whole or not at all.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace [[gnu::visibility("default")]] attune {

/// The whole file as bytes. Throws FileError when it is missing, unreadable or larger than `max_bytes`.
std::string read_file(const std::filesystem::path& path, uint64_t max_bytes = uint64_t{1} << 30);

/// Its size. Throws FileError.
int64_t file_bytes(const std::filesystem::path& path);

/// Replaces `path` by what `write` produces: a temporary file beside it, fsync, rename. When anything fails (no space,
/// no permission, an exception), the old file stays as it was and the temporary one is removed. Throws FileError.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* data, size_t bytes);
  void write(std::string_view text) { write(text.data(), text.size()); }
  void commit();  // fsync and rename; without it nothing happens to `path`

 private:
  std::filesystem::path path_;
  std::filesystem::path temporary_;
  int descriptor_ = -1;
};

/// AtomicFile with one piece of text.
void write_file(const std::filesystem::path& path, std::string_view text);

enum class FileAccess {
  read_only,
  copy_on_write,  // what is written is this process's own, page by page, and never reaches the file
};

/// A mapping of a whole file: its pages are those of the system's file cache, shared by all processes that read it. A
/// file that is replaced by rename stays as it was here; one that is shortened in place ends the process at its first
/// access beyond the end (SIGBUS), as with every mapping. Throws FileError.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path, FileAccess access = FileAccess::read_only);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  std::byte* writable() const { return data_; }  // with copy_on_write
  /// Takes the pages that lie within `part` out of this process's memory; they are read again when they are needed.
  /// What was written to them is lost.
  void release(std::span<const std::byte> part) const;

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

/// Makes a folder and those above it. Throws FileError.
void make_directories(const std::filesystem::path& path);

/// Gives a folder that is complete its name, safe against a power cut. Throws FileError, also when there is a folder of
/// that name with something in it.
void rename_folder(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace attune
