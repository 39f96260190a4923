#pragma once
// A digest that all threads compute together: the SHA-256 of the SHA-256 digests (as hexadecimal digits) of pieces of
// 4 MiB.

#include <cstddef>
#include <span>
#include <string>

#include "attune/base/sha256.h"

namespace attune {

class ContentDigest {
 public:
  /// Adds a part of the data in pieces. The last piece of a part may be shorter, so that the same data in other parts
  /// gives another digest.
  void add(std::span<const std::byte> part);

  /// 64 hexadecimal digits. Call it once, last.
  std::string hex() { return of_pieces_.hex(); }

 private:
  Sha256 of_pieces_;
};

}  // namespace attune
