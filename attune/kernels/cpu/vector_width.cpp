#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attune/kernels/cpu/vector_width.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include "attune/kernels/cpu/vector_width.h"

HWY_BEFORE_NAMESPACE();
namespace attune {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

bool WideVectors() {
  return hn::Lanes(hn::ScalableTag<uint8_t>()) >= 64;
}

}  // namespace
// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attune
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attune {
namespace {

HWY_EXPORT(WideVectors);

}  // namespace

bool cpu::has_wide_vectors() {
  return HWY_DYNAMIC_DISPATCH(WideVectors)();
}

}  // namespace attune
#endif
