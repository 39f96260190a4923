#pragma once
// Stores results of products with panels, with AVX-512. x86-64 alone.

#include <immintrin.h>

#include <algorithm>

#include "attune/kernels/cpu/gemm/panel_block.h"

namespace attune::cpu {

/// Writes sums + bias to the outputs of one panel in one row of y. Outputs that the block does not have are not
/// written.
__attribute__((target("avx512f"))) inline void store_panel_row(const PanelBlock& b, int64_t row, int64_t panel,
                                                               __m512 sums) {
  const int64_t output = panel * kPanelOutputs, count = std::min(kPanelOutputs, b.outputs - output);
  const auto mask = static_cast<__mmask16>((1u << count) - 1);
  const __m512 bias = b.bias != nullptr ? _mm512_maskz_loadu_ps(mask, b.bias + output) : _mm512_setzero_ps();
  _mm512_mask_storeu_ps(b.y + row * b.width + output, mask, _mm512_add_ps(sums, bias));
}

}  // namespace attune::cpu
