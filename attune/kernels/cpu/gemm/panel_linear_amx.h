#pragma once

#include "attune/kernels/cpu/gemm/panel_block.h"

namespace attune::cpu {

/// Products of tiles of 16 rows with panels of int8, for many rows. Returns false and does nothing if there are few
/// rows, if `in` does not fill its last tile, or if the processor or the system has no such tiles. x.numbers may be
/// read for 15 rows beyond the last. x86-64 with AVX-512 alone.
bool int8_block_amx(const QuantisedRows& x, const PanelBlock& block);

}  // namespace attune::cpu
