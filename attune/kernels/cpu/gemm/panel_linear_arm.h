#pragma once
// Sums of products of bytes with the instructions that Arm has for them. They are exact, so that every way has the same
// bits.

#include "attune/kernels/cpu/gemm/panel_block.h"

namespace attune::cpu {

/// Armv8.2's dot products (SDOT), and for four rows and more of int8 its products of small matrices (I8MM). Returns
/// false and does nothing if the processor has no dot products.
bool integer_block_arm(const QuantisedRows& x, const PanelBlock& block);

}  // namespace attune::cpu
