#include "attune/io/stored_values.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

namespace attune {
namespace {

static_assert(std::endian::native == std::endian::little, "values are little-endian and read as they are");

// IEEE 754 binary16: 1 sign, 5 exponent (bias 15) and 10 fraction bits.
float half_to_float(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t exponent = (half >> 10) & 0x1fu;
  const uint32_t fraction = half & 0x3ffu;
  if (exponent == 0) {  // zero or subnormal: fraction * 2^-24
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return sign != 0 ? -magnitude : magnitude;
  }
  const uint32_t wide = exponent == 31 ? 255 : exponent + 112;  // 112 = 127 - 15; 31 is infinity or NaN
  return std::bit_cast<float>(sign | (wide << 23) | (fraction << 13));
}

float bfloat16_to_float(uint16_t half) {
  return std::bit_cast<float>(static_cast<uint32_t>(half) << 16);
}

// In blocks that stay in the first-level cache, because neither side need be aligned.
template <class Convert>
void widen(std::span<const std::byte> from, std::span<std::byte> to, Convert convert) {
  constexpr size_t kBlock = 1024;
  std::array<uint16_t, kBlock> halves;
  std::array<float, kBlock> values;
  const size_t count = from.size() / sizeof(uint16_t);
  for (size_t begin = 0; begin < count; begin += kBlock) {
    const size_t n = std::min(kBlock, count - begin);
    std::memcpy(halves.data(), from.data() + begin * sizeof(uint16_t), n * sizeof(uint16_t));
    std::transform(halves.begin(), halves.begin() + static_cast<ptrdiff_t>(n), values.begin(), convert);
    std::memcpy(to.data() + begin * sizeof(float), values.data(), n * sizeof(float));
  }
}

}  // namespace

void load_stored(StoredType type, std::span<const std::byte> from, const Tensor& target) {
  if (type == StoredType::f16) {
    widen(from, target.host_bytes(), half_to_float);
  } else if (type == StoredType::bf16) {
    widen(from, target.host_bytes(), bfloat16_to_float);
  } else {
    target.assign_bytes(from);
  }
}

}  // namespace attune
