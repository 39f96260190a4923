#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attune/kernels/cpu/bfloat16.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include "attune/base/parallel.h"
#include "attune/kernels/bfloat16.h"
#include "attune/kernels/cpu/bfloat16.h"
#include "attune/kernels/cpu/bfloat16_inl.h"

HWY_BEFORE_NAMESPACE();
namespace attune {
namespace HWY_NAMESPACE {
namespace {

template <class From, class To>
HWY_INLINE void Convert(const From* x, To* y, size_t n) {
  const hn::ScalableTag<float> d;
  ForEachVector(d, n, [&](size_t i, auto part) HWY_ATTR { StoreAs(d, part, LoadAs(d, part, x + i), y + i); });
}
void Narrow(const float* x, bfloat16* y, size_t n) {
  Convert(x, y, n);
}
void Widen(const bfloat16* x, float* y, size_t n) {
  Convert(x, y, n);
}

}  // namespace
// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attune
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attune {
namespace {

HWY_EXPORT(Narrow);
HWY_EXPORT(Widen);

constexpr int64_t kGrain = 1 << 15;

}  // namespace

namespace cpu {

void to_bfloat16(const float* x, bfloat16* y, int64_t n) {
  parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(Narrow)(x + begin, y + begin, static_cast<size_t>(end - begin));
  });
}
void widen(const bfloat16* x, float* y, int64_t n) {
  parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(Widen)(x + begin, y + begin, static_cast<size_t>(end - begin));
  });
}

}  // namespace cpu

void to_bfloat16(Cpu, const Tensor& x, const Tensor& y) {
  cpu::to_bfloat16(x.data<float>(), y.data<bfloat16>(), x.numel());
}
void widen(Cpu, const Tensor& x, const Tensor& y) {
  cpu::widen(x.data<bfloat16>(), y.data<float>(), x.numel());
}

}  // namespace attune
#endif
