#include "attune/kernels/gemm/quantise.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace attune {
namespace {

struct Group {
  std::array<float, kGroupInputs> values;
  std::array<uint8_t, kGroupInputs> numbers;  // q + 8
};

// The 4-bit numbers for a scale, and their squared error in units of `largest`.
float quantise(Group& group, float scale, float largest) {
  const float inverse = std::abs(scale) < std::numeric_limits<float>::min() ? 0.0f : 1 / scale;
  float error = 0;
  for (size_t i = 0; i < group.values.size(); ++i) {
    const float q = std::clamp(std::nearbyint(group.values[i] * inverse), -8.0f, 7.0f);
    const float difference = group.values[i] / largest - q * (scale / largest);
    group.numbers[i] = static_cast<uint8_t>(q + 8);
    error += difference * difference;
  }
  return error;
}

}  // namespace

float quantise_output(std::span<const float> weight, std::span<int8_t> numbers) {
  float largest = 0;
  for (const float value : weight) largest = std::max(largest, std::abs(value));
  const float scale = largest / 127;
  const float inverse = scale < std::numeric_limits<float>::min() ? 0.0f : 127 / largest;
  for (size_t k = 0; k < weight.size(); ++k)
    numbers[k] = static_cast<int8_t>(std::clamp(std::nearbyint(weight[k] * inverse), -127.0f, 127.0f));
  return scale;
}

// The numbers are -8 to 7. Tries scales that map the largest value to about -8 or about 7, also a little beyond the
// range: clipping that value may reduce the error of all others.
QuantisedGroup quantise_group(std::span<const float> weight) {
  Group group{};
  std::copy(weight.begin(), weight.end(), group.values.begin());
  float largest = 0;
  for (const float value : group.values)
    if (std::abs(value) > std::abs(largest)) largest = value;
  bfloat16 best{0.0f};
  float least = std::numeric_limits<float>::max();
  for (const float steps : {8.0f, 7.75f, 7.5f, 7.25f, 7.0f, 8.25f, 8.5f, 9.0f, -7.0f, -7.25f, -7.5f, -7.75f}) {
    const bfloat16 scale{-largest / steps};
    if (const float error = quantise(group, scale, largest); error < least) {
      least = error;
      best = scale;
    }
  }
  quantise(group, best, 1);
  return {group.numbers, best};
}

}  // namespace attune
