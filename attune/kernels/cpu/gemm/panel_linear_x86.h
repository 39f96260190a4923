#pragma once
// Sums of products of bytes with the instructions that x86-64 has for them. They are exact, so that every way has the
// same bits.

#include "attune/kernels/cpu/gemm/panel_block.h"

namespace attune::cpu {

/// AVX-512 with VNNI, and AMX for many rows where the system lets programs use its tiles. Returns false and does
/// nothing if the processor has no VNNI.
bool integer_block_avx512(const QuantisedRows& x, const PanelBlock& block);

}  // namespace attune::cpu
