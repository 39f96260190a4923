#include "attune/io/zip_directory.h"

#include <algorithm>

#include "attune/io/byte_reader.h"
#include "attune/io/json_file.h"

namespace attune {
namespace {

constexpr uint32_t kLocalHeader = 0x04034b50, kCentralHeader = 0x02014b50, kEnd = 0x06054b50, kEnd64 = 0x06064b50,
                   kLocator64 = 0x07064b50;
constexpr uint64_t kEndBytes = 22, kLocatorBytes = 20, kMaxComment = 0xffff;
constexpr uint16_t kExtra64 = 1, kEncrypted = 1;
constexpr uint32_t kIn64 = 0xffffffff;  // the number stands in the entry's 64-bit fields

struct Directory {
  uint64_t entries = 0, begin = 0;
};

struct CentralHeader {
  std::string name;
  uint16_t flags = 0, method = 0;
  uint64_t stored_size = 0, size = 0, local_header = 0;
};

class ZipReader {
 public:
  ZipReader(std::span<const std::byte> archive, const std::string& where) : archive_(archive), where_(where) {}

  std::map<std::string, ZipEntry> entries() {
    const Directory directory = find_directory();
    ByteReader reader(archive_, where_, directory.begin);
    std::map<std::string, ZipEntry> entries;
    for (uint64_t i = 0; i < directory.entries; ++i) {
      CentralHeader header = central_header(reader);
      const ZipEntry entry = locate(header);
      if (!entries.emplace(std::move(header.name), entry).second)
        fail<FileError>("{}: two entries of the zip archive have one name", where_);
    }
    return entries;
  }

 private:
  // The end record is the last thing in the file but for a comment.
  Directory find_directory() const {
    if (archive_.size() < kEndBytes) fail<FileError>("{}: is no zip archive: has {} bytes", where_, archive_.size());
    const uint64_t last = archive_.size() - kEndBytes, first = last - std::min(last, kMaxComment);
    for (uint64_t at = last + 1; at-- > first;) {
      ByteReader reader(archive_, where_, at);
      if (reader.number<uint32_t>() != kEnd) continue;
      reader.skip(6);  // numbers of disks, entries on this one
      Directory directory;
      directory.entries = reader.number<uint16_t>();
      reader.skip(4);
      directory.begin = reader.number<uint32_t>();
      if (reader.number<uint16_t>() != reader.remaining()) continue;  // the length of the comment
      if (directory.begin == kIn64 || directory.entries == 0xffff) directory = directory64(at);
      return directory;
    }
    fail<FileError>("{}: is no zip archive: has no end record", where_);
  }

  Directory directory64(uint64_t end) const {
    if (end < kLocatorBytes) fail<FileError>("{}: zip archive has no 64-bit end record", where_);
    ByteReader locator(archive_, where_, end - kLocatorBytes);
    if (locator.number<uint32_t>() != kLocator64) fail<FileError>("{}: zip archive has no 64-bit end record", where_);
    locator.skip(4);
    ByteReader record(archive_, where_, locator.number<uint64_t>());
    if (record.number<uint32_t>() != kEnd64) fail<FileError>("{}: zip archive has no 64-bit end record", where_);
    record.skip(28);
    Directory directory;
    directory.entries = record.number<uint64_t>();
    record.skip(8);
    directory.begin = record.number<uint64_t>();
    return directory;
  }

  CentralHeader central_header(ByteReader& reader) const {
    if (reader.number<uint32_t>() != kCentralHeader)
      fail<FileError>("{}: zip directory is damaged at byte {}", where_, reader.position());
    CentralHeader header;
    reader.skip(4);
    header.flags = reader.number<uint16_t>();
    header.method = reader.number<uint16_t>();
    reader.skip(8);
    header.stored_size = reader.number<uint32_t>();
    header.size = reader.number<uint32_t>();
    const auto name_bytes = reader.number<uint16_t>(), extra_bytes = reader.number<uint16_t>(),
               comment_bytes = reader.number<uint16_t>();
    reader.skip(8);
    header.local_header = reader.number<uint32_t>();
    header.name = reader.text(name_bytes);
    read_extra64(ByteReader(reader.take(extra_bytes), where_), header);
    reader.skip(comment_bytes);
    return header;
  }

  // The 64-bit fields hold, in this order, those numbers that did not fit.
  static void read_extra64(ByteReader extra, CentralHeader& header) {
    while (extra.remaining() >= 4) {
      const auto id = extra.number<uint16_t>(), bytes = extra.number<uint16_t>();
      if (id != kExtra64) {
        extra.skip(bytes);
        continue;
      }
      for (uint64_t* field : {&header.size, &header.stored_size, &header.local_header})
        if (*field == kIn64) *field = extra.number<uint64_t>();
      return;
    }
  }

  ZipEntry locate(const CentralHeader& header) const {
    if ((header.flags & kEncrypted) != 0) fail<FileError>("{}: entry {} is encrypted", where_, in_quotes(header.name));
    if (header.method != 0 || header.stored_size != header.size)
      fail<FileError>("{}: entry {} is compressed, needs to be stored as it is", where_, in_quotes(header.name));
    ByteReader reader(archive_, where_, header.local_header);
    if (reader.number<uint32_t>() != kLocalHeader)
      fail<FileError>("{}: entry {} has no header at byte {}", where_, in_quotes(header.name), header.local_header);
    reader.skip(22);
    const auto name_bytes = reader.number<uint16_t>(), extra_bytes = reader.number<uint16_t>();
    reader.skip(uint64_t{name_bytes} + extra_bytes);
    const ZipEntry entry{.begin = reader.position(), .size = header.size};
    reader.skip(entry.size);
    return entry;
  }

  std::span<const std::byte> archive_;
  const std::string& where_;
};

}  // namespace

std::map<std::string, ZipEntry> read_zip_directory(std::span<const std::byte> archive, const std::string& where) {
  return ZipReader(archive, where).entries();
}

}  // namespace attune
