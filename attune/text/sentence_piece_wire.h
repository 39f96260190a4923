#pragma once
// Reads SentencePiece's models, which are protobuf messages, field by field. SentencePiece's shared library has a
// protobuf of its own, and a process that loads a second one crashes.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "attune/base/fail.h"

namespace attune {

/// One field of a protobuf message in wire format.
struct WireField {
  uint32_t number = 0;
  uint32_t type = 0;       // 0 varint, 1 fixed64, 2 bytes, 5 fixed32
  uint64_t value = 0;      // of a number
  std::string_view bytes;  // of type 2
  std::string_view whole;  // with its tag
};

/// The fields of one message, one after the other. A number is accepted only in its shortest encoding, which every
/// writer uses, so that no other parser can see different fields.
class WireReader {
 public:
  WireReader(std::string_view message, const std::string& name) : rest_(message), name_(name) {}

  std::optional<WireField> next() {
    if (rest_.empty()) return std::nullopt;
    const std::string_view start = rest_;
    const uint64_t tag = varint();
    WireField field;
    field.number = static_cast<uint32_t>(tag >> 3);
    field.type = static_cast<uint32_t>(tag & 7);
    if (tag > UINT32_MAX || field.number == 0) damaged();
    switch (field.type) {
      case 0:
        field.value = varint();
        break;
      case 1:
        field.value = number(take(8));
        break;
      case 2:
        field.bytes = take(varint());
        break;
      case 5:
        field.value = number(take(4));
        break;
      default:
        damaged();
    }
    field.whole = start.substr(0, start.size() - rest_.size());
    return field;
  }

 private:
  [[noreturn]] void damaged() const { fail<FileError>("{}: not a SentencePiece model, or a damaged one", name_); }

  std::string_view take(uint64_t bytes) {
    if (bytes > rest_.size()) damaged();
    const std::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return taken;
  }

  static uint64_t number(std::string_view little_endian) {
    uint64_t value = 0;
    for (size_t i = little_endian.size(); i > 0; --i)
      value = value << 8 | static_cast<unsigned char>(little_endian[i - 1]);
    return value;
  }

  uint64_t varint() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1).front());
      if (shift == 63 && byte > 1) damaged();
      value |= uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) {
        if (byte == 0 && shift > 0) damaged();
        return value;
      }
    }
    damaged();
  }

  std::string_view rest_;
  const std::string& name_;
};

}  // namespace attune
