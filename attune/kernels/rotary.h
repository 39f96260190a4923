#pragma once

#include <cstdint>
#include <vector>

#include "attune/tensor/tensor.h"

namespace [[gnu::visibility("default")]] attune {

/// Which dimensions of a head are rotated together.
enum class RotaryPairing {
  half,         // (i, i + d/2), as in the checkpoints of GPT-NeoX and LLaMA
  interleaved,  // (2i, 2i + 1), as in Su et al. 2021
};

struct RotaryFrequencies {
  std::vector<double> frequencies;  // angle per position of each pair, [dimensions / 2]
  double magnitude = 1;             // factor on cos and sin: 0.1 ln(factor) + 1 with yarn
};

/// For each position the cosines of its angles, then their sines, both times the magnitude; angles are float64.
///   positions int32 [rows], or undefined: first, first + 1, ...   table [rows, 2, pairs], float32 or float64
void rotary_table(Cpu, const RotaryFrequencies& frequencies, const Tensor& positions, int64_t first,
                  const Tensor& table);
void rotary_table(Plain, const RotaryFrequencies& frequencies, const Tensor& positions, int64_t first,
                  const Tensor& table);

struct RotaryRows {
  Tensor x;           // [n, heads, d], float32 or float64
  Tensor table;       // of rotary_table(), of the same dtype
  Tensor table_rows;  // int32 [n]: row i of x takes row table_rows[i] of the table
  int64_t rotated;    // heads: the first ones
  RotaryPairing pairing;
  bool back;  // rotates by the negative angles
  Tensor y;   // like x
};
/// y = x with the first 2 * pairs numbers of each of the first `rotated` heads rotated.
void rotary_rows(Cpu, const RotaryRows& arguments);
void rotary_rows(Plain, const RotaryRows& arguments);

}  // namespace attune
