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

int64_t VectorBytes() {
  return static_cast<int64_t>(hn::Lanes(hn::ScalableTag<uint8_t>()));
}

}  // namespace
// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attune
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attune {
namespace {

HWY_EXPORT(VectorBytes);

}  // namespace

int64_t cpu::vector_bytes() {
  return HWY_DYNAMIC_DISPATCH(VectorBytes)();
}

}  // namespace attune
#endif
