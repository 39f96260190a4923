#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attune/kernels/cpu/gemm/float_panel.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <cstring>

#include "attune/kernels/cpu/gemm/panel_data.h"
#include "attune/kernels/cpu/gemm/transpose_inl.h"

HWY_BEFORE_NAMESPACE();
namespace attune {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// Loads four inputs of each of four outputs and transposes them in registers.
void Panel(const float* const* rows, size_t in, float* panel) {
  size_t k = 0;
#if HWY_TARGET != HWY_SCALAR
  for (; k + 4 <= in; k += 4) {
    for (size_t j = 0; j < kPanelOutputs; j += 4)
      Transpose4({rows[j] + k, rows[j + 1] + k, rows[j + 2] + k, rows[j + 3] + k}, panel + k * kPanelOutputs + j,
                 kPanelOutputs);
  }
#endif
  for (; k < in; ++k)
    for (size_t j = 0; j < kPanelOutputs; ++j)  // pairs of bfloat16 may not be aligned
      std::memcpy(panel + k * kPanelOutputs + j, rows[j] + k, sizeof(float));
}

}  // namespace
// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attune
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attune {
namespace {

HWY_EXPORT(Panel);

}  // namespace

void cpu::lay_out_float_panel(const float* const* rows, int64_t in, float* panel) {
  HWY_DYNAMIC_DISPATCH(Panel)(rows, static_cast<size_t>(in), panel);
}

}  // namespace attune
#endif
