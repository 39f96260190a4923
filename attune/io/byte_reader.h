#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "attune/base/fail.h"

namespace attune {

/// Reads little-endian numbers and text from bytes, one after the other. Throws FileError, which begins with `where`
/// and names the position, for what would lie beyond the end.
class ByteReader {
 public:
  ByteReader(std::span<const std::byte> bytes, std::string where, uint64_t position = 0)
      : bytes_(bytes), where_(std::move(where)) {
    seek(position);
  }

  uint64_t position() const { return position_; }
  uint64_t remaining() const { return bytes_.size() - position_; }

  void seek(uint64_t position) {
    if (position > bytes_.size())
      fail<FileError>("{}: points to byte {}, has {} bytes", where_, position, bytes_.size());
    position_ = position;
  }
  void skip(uint64_t count) { take(count); }

  template <class T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }
  std::string_view text(uint64_t count) {
    const std::span<const std::byte> bytes = take(count);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  std::span<const std::byte> take(uint64_t count) {
    if (count > remaining())
      fail<FileError>("{}: ends at byte {}, needs {} bytes from byte {} on", where_, bytes_.size(), count, position_);
    const auto bytes = bytes_.subspan(position_, count);
    position_ += count;
    return bytes;
  }

 private:
  std::span<const std::byte> bytes_;
  std::string where_;
  uint64_t position_ = 0;
};

}  // namespace attune
