#pragma once

#include <vector>

namespace [[gnu::visibility("default")]] attune {

/// Which dimensions of a head are rotated together.
enum class RotaryPairing {
  half,         // (i, i + d/2), as in the checkpoints of GPT-NeoX and LLaMA
  interleaved,  // (2i, 2i + 1), as in Su et al. 2021
};

struct RotaryFrequencies {
  std::vector<double> frequencies;  // the angle per position, for each pair: [dimensions / 2]
  double magnitude = 1;             // factor on cos and sin: 0.1 ln(factor) + 1 with yarn
};

}  // namespace attune
