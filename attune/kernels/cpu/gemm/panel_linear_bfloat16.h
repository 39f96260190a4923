#pragma once

#include "attune/kernels/cpu/gemm/panel_block.h"
#include "attune/tensor/dtype.h"

namespace attune::cpu {

/// Rows in bfloat16. `stride` is a multiple of 32; numbers behind a row are 0; 15 rows more may be read.
struct Bfloat16Rows {
  const bfloat16* numbers;  // [rows, stride]
  int64_t stride;
};

/// Whether the processor has instructions for products of bfloat16 numbers: AVX512-BF16, or Arm's BFDOT.
bool has_bfloat16_block();

/// Products of bfloat16 rows with bfloat16 panels, summed in float32: with AMX where `in` fills its tiles and the
/// system lets programs use them, else with AVX512-BF16; on Arm with BFDOT. The order of a sum depends on `in` alone,
/// so that a row's result does not depend on other rows. Needs has_bfloat16_block().
void bfloat16_block(const Bfloat16Rows& x, const PanelBlock& block);

}  // namespace attune::cpu
