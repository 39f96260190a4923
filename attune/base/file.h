#pragma once
// Files are read up to a size limit, and written whole or not at all.

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

/// Whether there is a file or a folder at `path`; false too where the system does not say.
bool is_there(const std::filesystem::path& path);
/// The same; a link that leads nowhere is there too.
bool is_there_or_link(const std::filesystem::path& path);

/// "standard output" or "standard error" where the path leads to the regular file that one of them goes to, as
/// /dev/stdout does, or is "-", which other programs take for standard output; else empty.
std::string_view standard_stream(const std::filesystem::path& path);

/// The size of the file. Throws FileError.
int64_t file_bytes(const std::filesystem::path& path);

/// Replaces the file `path`. write() appends to a temporary file beside it; commit() calls fsync and renames that file.
/// On any failure (no space, no permission, an exception) the old file stays and the temporary one is removed. What a
/// killed process left of the same file is removed too. The permissions of a file that is replaced are kept. A
/// character device (/dev/null) and a pipe stay and are written to directly, without a promise. Throws FileError, also
/// for what standard_stream() names: a rename would lose what went there before.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* data, size_t bytes);
  void write(std::string_view text) { write(text.data(), text.size()); }
  void commit();  // fsync and rename; without it `path` does not change

 private:
  struct Opened;
  std::filesystem::path path_;
  std::unique_ptr<Opened> opened_;  // until commit()
};

/// Writes `text` with an AtomicFile. Throws FileError.
void write_file(const std::filesystem::path& path, std::string_view text);

enum class FileAccess {
  read_only,
  copy_on_write,  // written pages are private to this process; nothing reaches the file
};

/// A memory mapping of a whole file. All processes that read the file share its pages in the system's file cache.
/// If the file is replaced by rename, the mapping keeps the old content. If it is shortened in place, an access beyond
/// its end kills the process (SIGBUS), as with every mapping. Throws FileError.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path, FileAccess access = FileAccess::read_only);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  std::byte* writable() const { return data_; }  // with copy_on_write
  /// Releases the memory of the pages that lie within `part`; the next access reads them from the file again.
  /// What was written to them is lost.
  void release(std::span<const std::byte> part) const;

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

/// Makes a folder and its parent folders. Throws FileError.
void make_directories(const std::filesystem::path& path);

/// Renames a complete folder so that a power cut cannot leave it incomplete. Throws FileError, also if `to` is a
/// folder that is not empty.
void rename_folder(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace attune
