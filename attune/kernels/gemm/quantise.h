#pragma once
// Quantisation of weights: the definition that every device follows.

#include <array>
#include <cstdint>
#include <span>

#include "attune/kernels/gemm/panel_weight.h"

namespace attune {

/// Writes q = round(w / scale) in [-127, 127] for one output of a weight; returns scale = largest magnitude / 127.
float quantise_output(std::span<const float> weight, std::span<int8_t> numbers);

struct QuantisedGroup {
  std::array<uint8_t, kGroupInputs> numbers;  // q + 8
  bfloat16 scale;
};

/// Returns q = round(w / scale) in [-8, 7] for up to kGroupInputs inputs of one output; missing inputs count as zeros.
/// Tries several scales and takes the one with the least squared error.
QuantisedGroup quantise_group(std::span<const float> weight);

}  // namespace attune
