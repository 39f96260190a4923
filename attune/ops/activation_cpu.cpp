#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attune/ops/activation_cpu.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include "attune/base/parallel.h"
#include "attune/ops/activation_inl.h"
#include "attune/ops/activation_kernel.h"
#include "attune/ops/bfloat16_inl.h"
#include "attune/ops/simd_inl.h"

HWY_BEFORE_NAMESPACE();
namespace attune {
namespace HWY_NAMESPACE {
namespace {

template <class T>
void Forward(ActivationKind kind, const T* x, T* y, size_t n) {
  const hn::ScalableTag<Arithmetic<T>> d;
  WithActivation(kind, [&](auto activation) HWY_ATTR {
    ForEachVector(d, n, [&](size_t i, auto part) HWY_ATTR {
      StoreAs(d, part, activation.Value(d, LoadAs(d, part, x + i)), y + i);
    });
  });
}

template <class T>
void Backward(ActivationKind kind, const T* saved, const T* dy, T* dx, size_t n) {
  const hn::ScalableTag<T> d;
  WithActivation(kind, [&](auto activation) HWY_ATTR {
    ForEachVector(d, n, [&](size_t i, auto part) HWY_ATTR {
      part.Store(d, activation.Gradient(d, part.Load(d, saved + i), part.Load(d, dy + i)), dx + i);
    });
  });
}

void Forward32(ActivationKind kind, const float* x, float* y, size_t n) {
  Forward(kind, x, y, n);
}
void Forward64(ActivationKind kind, const double* x, double* y, size_t n) {
  Forward(kind, x, y, n);
}
void Forward16(ActivationKind kind, const bfloat16* x, bfloat16* y, size_t n) {
  Forward(kind, x, y, n);
}
void Backward32(ActivationKind kind, const float* saved, const float* dy, float* dx, size_t n) {
  Backward(kind, saved, dy, dx, n);
}
void Backward64(ActivationKind kind, const double* saved, const double* dy, double* dx, size_t n) {
  Backward(kind, saved, dy, dx, n);
}

}  // namespace
// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attune
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attune {
namespace {

HWY_EXPORT(Forward32);
HWY_EXPORT(Forward64);
HWY_EXPORT(Forward16);
HWY_EXPORT(Backward32);
HWY_EXPORT(Backward64);

constexpr int64_t kGrain = 1 << 15;

}  // namespace

void activation_forward(Cpu, ActivationKind kind, const float* x, float* y, int64_t n) {
  parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(Forward32)(kind, x + begin, y + begin, static_cast<size_t>(end - begin));
  });
}
void activation_forward(Cpu, ActivationKind kind, const double* x, double* y, int64_t n) {
  parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(Forward64)(kind, x + begin, y + begin, static_cast<size_t>(end - begin));
  });
}
void activation_forward(Cpu, ActivationKind kind, const bfloat16* x, bfloat16* y, int64_t n) {
  parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(Forward16)(kind, x + begin, y + begin, static_cast<size_t>(end - begin));
  });
}
void activation_backward(Cpu, ActivationKind kind, const float* saved, const float* dy, float* dx, int64_t n) {
  parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(Backward32)(kind, saved + begin, dy + begin, dx + begin, static_cast<size_t>(end - begin));
  });
}
void activation_backward(Cpu, ActivationKind kind, const double* saved, const double* dy, double* dx, int64_t n) {
  parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(Backward64)(kind, saved + begin, dy + begin, dx + begin, static_cast<size_t>(end - begin));
  });
}

}  // namespace attune
#endif
