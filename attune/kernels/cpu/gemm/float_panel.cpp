#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attune/kernels/cpu/gemm/float_panel.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include "attune/kernels/cpu/gemm/panel_data.h"

HWY_BEFORE_NAMESPACE();
namespace attune {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// Loads four inputs of each of four outputs and transposes them in registers.
void Panel(const float* const* rows, size_t in, float* panel, size_t stride) {
  size_t k = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::FixedTag<float, 4> d;
  const hn::Repartition<uint64_t, decltype(d)> pairs;
  for (; k + 4 <= in; k += 4) {
    for (size_t j = 0; j < kPanelOutputs; j += 4) {
      const auto a = hn::LoadU(d, rows[j] + k), b = hn::LoadU(d, rows[j + 1] + k), c = hn::LoadU(d, rows[j + 2] + k),
                 e = hn::LoadU(d, rows[j + 3] + k);
      const auto ab_0 = hn::BitCast(pairs, hn::InterleaveLower(d, a, b)),
                 ab_2 = hn::BitCast(pairs, hn::InterleaveUpper(d, a, b));
      const auto ce_0 = hn::BitCast(pairs, hn::InterleaveLower(d, c, e)),
                 ce_2 = hn::BitCast(pairs, hn::InterleaveUpper(d, c, e));
      float* const to = panel + k * stride + j;
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, ab_0, ce_0)), d, to);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, ab_0, ce_0)), d, to + stride);
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, ab_2, ce_2)), d, to + 2 * stride);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, ab_2, ce_2)), d, to + 3 * stride);
    }
  }
#endif
  for (; k < in; ++k)
    for (size_t j = 0; j < kPanelOutputs; ++j) panel[k * stride + j] = rows[j][k];
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

void cpu::lay_out_float_panel(const float* const* rows, int64_t in, float* panel, int64_t stride) {
  HWY_DYNAMIC_DISPATCH(Panel)(rows, static_cast<size_t>(in), panel, static_cast<size_t>(stride));
}

}  // namespace attune
#endif
