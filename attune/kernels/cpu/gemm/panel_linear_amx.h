#pragma once

#include "attune/kernels/cpu/gemm/panel_block.h"

namespace attune::cpu {

/// Products of tiles of 16 rows with panels of int8, for many rows. False, with nothing done, where rows are few, where
/// `in` does not fill its last tile, or where the processor or the system has no such tiles. x.numbers may be read for
/// 15 rows more. x86-64 with AVX-512 alone.
bool int8_block_amx(const QuantisedRows& x, const PanelBlock& block);

}  // namespace attune::cpu
