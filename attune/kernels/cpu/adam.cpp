#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attune/kernels/cpu/adam.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <cmath>

#include "attune/base/parallel.h"
#include "attune/kernels/adam.h"
#include "attune/kernels/cpu/adam_pointers.h"
#include "attune/kernels/cpu/for_type.h"
#include "attune/kernels/cpu/simd_inl.h"
#include "attune/kernels/for_dtype.h"

HWY_BEFORE_NAMESPACE();
namespace attune {
namespace HWY_NAMESPACE {
namespace {

template <class T>
HWY_INLINE void AdamStep(AdamPointers<T> at, double ema_decay, size_t n, const AdamStepArguments& a) {
  const hn::ScalableTag<T> d;
  const auto set = [&](double value) HWY_ATTR { return hn::Set(d, static_cast<T>(value)); };
  const auto gradient_scale = set(a.gradient_scale);
  const auto l2 = set(a.l2);
  // m and the average become old + (1 - beta) * (new - old). As beta * old + (1 - beta) * new they would settle beside
  // the value that they follow: beta and 1 - beta, each rounded, do not sum to 1.
  const auto rest_1 = set(1 - a.beta_1);
  const auto beta_2 = set(a.beta_2);
  const auto rest_2 = set(1 - a.beta_2);
  const auto epsilon = set(a.epsilon);
  const auto root_scale = set(1 / std::sqrt(a.bias_correction_2));
  const auto step = set(a.learning_rate / a.bias_correction_1);
  const auto shrink = set(1 - a.learning_rate * a.weight_decay);
  const auto rest = set(1 - ema_decay);
  ForEachVector(d, n, [&](size_t i, auto part) HWY_ATTR {
    auto p = part.Load(d, at.parameter + i);
    const auto g = hn::MulAdd(l2, p, hn::Mul(part.Load(d, at.gradient + i), gradient_scale));
    const auto old_m = part.Load(d, at.m + i);
    const auto m = hn::MulAdd(rest_1, hn::Sub(g, old_m), old_m);
    const auto v = hn::MulAdd(beta_2, part.Load(d, at.v + i), hn::Mul(rest_2, hn::Mul(g, g)));
    const auto root = hn::MulAdd(hn::Sqrt(v), root_scale, epsilon);
    p = hn::NegMulAdd(step, hn::Div(m, root), hn::Mul(p, shrink));
    part.Store(d, m, at.m + i);
    part.Store(d, v, at.v + i);
    part.Store(d, p, at.parameter + i);
    if (at.average == nullptr) return;
    const auto average = part.Load(d, at.average + i);
    part.Store(d, hn::MulAdd(rest, hn::Sub(p, average), average), at.average + i);
  });
}

void AdamStep32(const AdamPointers<float>& at, double ema_decay, size_t n, const AdamStepArguments& a) {
  AdamStep(at, ema_decay, n, a);
}
void AdamStep64(const AdamPointers<double>& at, double ema_decay, size_t n, const AdamStepArguments& a) {
  AdamStep(at, ema_decay, n, a);
}

}  // namespace
// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attune
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attune {
namespace {

HWY_EXPORT(AdamStep32);
HWY_EXPORT(AdamStep64);

constexpr int64_t kGrain = 1 << 15;

}  // namespace

void adam_step(Cpu, const AdamTensors& t, double ema_decay, const AdamStepArguments& arguments) {
  dispatch_floating("adam", t.parameter.dtype(), [&]<class T>(T) {
    const AdamPointers<T> at{t.parameter.data<T>(), t.gradient.data<T>(), t.m.data<T>(), t.v.data<T>(),
                             data_or_null<T>(t.average)};
    parallel_for(t.parameter.numel(), kGrain, [&](int64_t i, int64_t end) {
      for_type<T>(HWY_DYNAMIC_DISPATCH(AdamStep32), HWY_DYNAMIC_DISPATCH(AdamStep64))(
          at.from(i), ema_decay, static_cast<size_t>(end - i), arguments);
    });
  });
}

}  // namespace attune
#endif
