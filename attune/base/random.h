#pragma once
// Counter-based random numbers: a pure function of (seed, stream, index), so neither thread count nor the order of
// calls changes a run. Philox 4x32-10, Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3".

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace attune {

/// Four 32-bit words from a 128-bit counter and a 64-bit key, ten rounds.
std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, uint64_t key);

/// A sequence of random numbers, identified by (seed, stream). Its position can be read and set, so that a resumed run
/// continues where it was.
class Random {
 public:
  explicit Random(uint64_t seed, uint64_t stream = 0) : seed_(seed), stream_(stream) {}

  uint32_t next();                 // uniform over all 32-bit words
  uint64_t below(uint64_t bound);  // uniform in [0, bound); bound > 0; without modulo bias
  double uniform();                // in [0, 1), 53 bits
  double normal();                 // mean 0, variance 1 (Box-Muller)

  /// Fisher-Yates shuffle.
  template <class T>
  void shuffle(std::vector<T>& values) {
    for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[below(i)]);
  }

  uint64_t position() const { return position_; }
  void set_position(uint64_t position) { position_ = position; }

 private:
  uint64_t seed_;
  uint64_t stream_;
  uint64_t position_ = 0;  // words drawn so far
};

}  // namespace attune
