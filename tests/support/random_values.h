#pragma once

#include <cstdint>
#include <vector>

#include "attune/base/random.h"

namespace attune {

/// Numbers of a normal distribution, the same for the same seed and stream.
inline std::vector<float> random_values(uint64_t seed, uint64_t stream, int64_t count) {
  Random random(seed, stream);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = static_cast<float>(random.normal());
  return values;
}

}  // namespace attune
