#pragma once

#include <cstdint>

#include "attune/kernels/attention/rotary_pairing.h"
#include "attune/tensor/tensor.h"

namespace attune {

/// Writes for each position the cosines of its angles, then their sines, both times the magnitude. Angles are float64.
///   positions int32 [rows], or undefined: first, first + 1, ...   table [rows, 2, pairs], float32 or float64
void rotary_table(Cpu, const RotaryFrequencies& frequencies, const Tensor& positions, int64_t first,
                  const Tensor& table);
void rotary_table(Plain, const RotaryFrequencies& frequencies, const Tensor& positions, int64_t first,
                  const Tensor& table);
void rotary_table(Cuda, const RotaryFrequencies& frequencies, const Tensor& positions, int64_t first,
                  const Tensor& table);

struct RotaryRows {
  Tensor x;           // [n, heads, d], float32 or float64
  Tensor table;       // from rotary_table(), of the same dtype
  Tensor table_rows;  // int32 [n]: row i of x uses row table_rows[i] of the table
  int64_t rotated;    // how many heads are rotated, the first ones
  RotaryPairing pairing;
  bool back;  // rotates by the negative angles, for gradients
  Tensor y;   // like x
};
/// y = x with the first 2 * pairs numbers of each of the first `rotated` heads rotated.
void rotary_rows(Cpu, const RotaryRows& arguments);
void rotary_rows(Plain, const RotaryRows& arguments);
void rotary_rows(Cuda, const RotaryRows& arguments);

}  // namespace attune
