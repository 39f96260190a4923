#include "attune/base/random.h"

#include <cmath>
#include <numbers>

namespace attune {

std::array<uint32_t, 4> philox(std::array<uint32_t, 4> c, uint64_t key) {
  auto k0 = static_cast<uint32_t>(key);
  auto k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * c[0];
    const uint64_t p1 = uint64_t{0xCD9E8D57u} * c[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(p0)};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}

uint32_t Random::next() {
  const uint64_t block = position_ / 4;
  const auto words = philox({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32),
                             static_cast<uint32_t>(stream_), static_cast<uint32_t>(stream_ >> 32)},
                            seed_);
  return words[position_++ % 4];
}

uint64_t Random::below(uint64_t bound) {
  const uint64_t limit = UINT64_MAX - UINT64_MAX % bound;  // the largest multiple of bound that fits
  for (;;) {
    const uint64_t high = next();
    const uint64_t value = (high << 32) | next();
    if (value < limit) return value % bound;
  }
}

double Random::uniform() {
  const uint64_t high = next();
  return static_cast<double>(((high << 32) | next()) >> 11) * 0x1.0p-53;
}

double Random::normal() {
  const double u = 1.0 - uniform();  // in (0, 1], so that the logarithm is finite
  const double v = uniform();
  return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v);
}

}  // namespace attune
