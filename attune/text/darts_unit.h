#pragma once

#include <cstdint>

namespace attune {

/// One unit of the double array of Darts-clone, a trie in 32-bit words (darts.h, DoubleArrayUnit).
class DartsUnit {
 public:
  explicit DartsUnit(uint32_t word) : word_(word) {}
  bool has_leaf() const { return (word_ >> 8 & 1) == 1; }
  uint32_t value() const { return word_ & 0x7FFFFFFF; }
  uint32_t label() const { return word_ & 0x800000FF; }
  uint32_t offset() const { return word_ >> 10 << ((word_ & 0x200) >> 6); }

 private:
  uint32_t word_;
};

}  // namespace attune
