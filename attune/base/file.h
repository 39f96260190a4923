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

/// Whether there is a file or a folder at `path`; also false if the system cannot say.
bool is_there(const std::filesystem::path& path);
/// The same; a link that leads nowhere is there too.
bool is_there_or_link(const std::filesystem::path& path);

/// Returns "standard output" or "standard error" if the path leads to the regular file that this stream goes to, as
/// /dev/stdout does. Returns "standard output" also for "-", which other programs take for it. Else returns "".
std::string_view standard_stream(const std::filesystem::path& path);

/// The size of the file. Throws FileError.
int64_t file_bytes(const std::filesystem::path& path);

/// Replaces the file `path`. write() appends to a temporary file beside it; commit() calls fsync and renames that file.
/// On any failure (no space, no permission, an exception) the old file stays and the temporary one is removed. The
/// constructor also removes temporary files that killed processes left for the same `path`. The permissions of a file
/// that is replaced are kept. A link is followed: its target is written, whether it exists or not. A character device
/// (/dev/null) or a pipe is not replaced: it is written to directly, without these promises. Throws FileError, also for
/// a path that standard_stream() names: a rename would lose what the stream has written before.
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
