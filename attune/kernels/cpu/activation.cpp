#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attune/kernels/cpu/activation.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include "attune/base/parallel.h"
#include "attune/kernels/activation.h"
#include "attune/kernels/cpu/activation_inl.h"
#include "attune/kernels/cpu/activation_rows.h"
#include "attune/kernels/cpu/bfloat16_inl.h"
#include "attune/kernels/cpu/for_type.h"
#include "attune/kernels/cpu/simd_inl.h"
#include "attune/kernels/for_dtype.h"

HWY_BEFORE_NAMESPACE();
namespace attune {
namespace HWY_NAMESPACE {
namespace {

template <class T>
void Forward(Activation kind, const T* x, T* y, size_t n) {
  const hn::ScalableTag<Arithmetic<T>> d;
  WithActivation(kind, [&](auto activation) HWY_ATTR {
    ForEachVector(d, n, [&](size_t i, auto part) HWY_ATTR {
      StoreAs(d, part, activation.Value(d, LoadAs(d, part, x + i)), y + i);
    });
  });
}

template <class T>
void Backward(Activation kind, const T* saved, const T* dy, T* dx, size_t n) {
  const hn::ScalableTag<T> d;
  WithActivation(kind, [&](auto activation) HWY_ATTR {
    ForEachVector(d, n, [&](size_t i, auto part) HWY_ATTR {
      part.Store(d, activation.Gradient(d, part.Load(d, saved + i), part.Load(d, dy + i)), dx + i);
    });
  });
}

void Forward32(Activation kind, const float* x, float* y, size_t n) {
  Forward(kind, x, y, n);
}
void Forward64(Activation kind, const double* x, double* y, size_t n) {
  Forward(kind, x, y, n);
}
void Forward16(Activation kind, const bfloat16* x, bfloat16* y, size_t n) {
  Forward(kind, x, y, n);
}
void Backward32(Activation kind, const float* saved, const float* dy, float* dx, size_t n) {
  Backward(kind, saved, dy, dx, n);
}
void Backward64(Activation kind, const double* saved, const double* dy, double* dx, size_t n) {
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

namespace cpu {

void activate(Activation activation, const float* x, float* y, int64_t n) {
  parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(Forward32)(activation, x + begin, y + begin, static_cast<size_t>(end - begin));
  });
}
void activate(Activation activation, const double* x, double* y, int64_t n) {
  parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(Forward64)(activation, x + begin, y + begin, static_cast<size_t>(end - begin));
  });
}
void activate(Activation activation, const bfloat16* x, bfloat16* y, int64_t n) {
  parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(Forward16)(activation, x + begin, y + begin, static_cast<size_t>(end - begin));
  });
}

}  // namespace cpu

void activation_forward(Cpu, Activation activation, const Tensor& x, const Tensor& y) {
  for_storage_dtype("activation", x.dtype(),
                    [&]<class T>(T) { cpu::activate(activation, x.data<T>(), y.data<T>(), x.numel()); });
}

void activation_backward(Cpu, Activation activation, const Tensor& saved, const Tensor& dy, const Tensor& dx) {
  dispatch_floating("activation", dy.dtype(), [&]<class T>(T) {
    const T* const value = saved.data<T>();
    const T* const from = dy.data<T>();
    T* const to = dx.data<T>();
    parallel_for(dy.numel(), kGrain, [&](int64_t begin, int64_t end) {
      const auto n = static_cast<size_t>(end - begin);
      for_type<T>(HWY_DYNAMIC_DISPATCH(Backward32), HWY_DYNAMIC_DISPATCH(Backward64))(activation, value + begin,
                                                                                      from + begin, to + begin, n);
    });
  });
}

}  // namespace attune
#endif
