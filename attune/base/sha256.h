#pragma once
// SHA-256 (FIPS 180-4), to check that a file is the one that was written; `sha256sum` gives the same digest.

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace attune {

class Sha256 {
 public:
  void update(const void* data, size_t bytes);
  void update(std::string_view text) { update(text.data(), text.size()); }

  /// The digest of all bytes given to update(), as 64 hexadecimal digits. Call it once, last.
  std::string hex();

 private:
  void compress(const unsigned char* block);

  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, 64> block_{};  // the last bytes, fewer than a block
  size_t pending_ = 0;
  uint64_t bytes_ = 0;
};

inline std::string sha256(std::string_view text) {
  Sha256 hash;
  hash.update(text);
  return hash.hex();
}

/// The digest of a file's content. Throws FileError when it cannot be read.
std::string sha256_of_file(const std::filesystem::path& file);

}  // namespace attune
