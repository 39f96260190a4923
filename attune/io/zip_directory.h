#pragma once
// Where the files of a zip archive are. Source: PKWARE, APPNOTE.TXT 6.3.10, sections 4.3 and 4.5.3.

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>

namespace attune {

struct ZipEntry {
  uint64_t begin = 0;  // of its bytes in the archive
  uint64_t size = 0;
};

/// The entries by name. All of them must be stored as they are, so that they can be mapped. Throws FileError that
/// begins with `where`: no archive, damaged, an entry that is compressed or encrypted, a name that comes twice.
/// Checksums of the contents (CRC-32) are not checked, since that would read the whole archive.
std::map<std::string, ZipEntry> read_zip_directory(std::span<const std::byte> archive, const std::string& where);

}  // namespace attune
