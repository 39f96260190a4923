#pragma once

#include <cstdint>
#include <vector>

#include "attune/tensor/device.h"

namespace [[gnu::visibility("default")]] attune {

/// Which dimensions of a head are rotated together.
enum class RotaryPairing {
  half,         // (i, i + d/2), as in the checkpoints of GPT-NeoX and LLaMA
  interleaved,  // (2i, 2i + 1), as in Su et al. 2021
};

struct RotaryFrequencies {
  std::vector<double> frequencies;  // angle per place of each pair, [dimensions / 2]
  double magnitude = 1;             // factor on cos and sin: 0.1 ln(factor) + 1 with yarn
};

/// table [rows, 2, pairs]: for each place the cosines of its angles, then their sines, both times the magnitude. Place
/// of row i: positions[i], or first + i where positions is null. Angles are formed in float64.
template <class T>
struct RotaryTable {
  const RotaryFrequencies& frequencies;
  const int32_t* positions;
  int64_t first;
  int64_t rows;
  T* table;
};
void rotary_table(Cpu, const RotaryTable<float>& arguments);
void rotary_table(Cpu, const RotaryTable<double>& arguments);

/// y = x with the first 2 * pairs numbers of each of the first `rotated` heads rotated, or rotated back; row i takes
/// row table_rows[i].
template <class T>
struct RotaryRows {
  const T* x;
  const T* table;
  const int32_t* table_rows;
  int64_t n, heads, rotated, d, pairs;
  RotaryPairing pairing;
  bool back;
  T* y;
};
void rotary_rows(Cpu, const RotaryRows<float>& arguments);
void rotary_rows(Cpu, const RotaryRows<double>& arguments);

}  // namespace attune
