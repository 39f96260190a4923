#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attune/kernels/cpu/log_mean_exp.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "attune/base/parallel.h"
#include "attune/kernels/cpu/for_type.h"
#include "attune/kernels/cpu/math_inl.h"
#include "attune/kernels/cpu/simd_inl.h"
#include "attune/kernels/log_mean_exp.h"
#include "attune/kernels/row_grain.h"

HWY_BEFORE_NAMESPACE();
namespace attune {
namespace HWY_NAMESPACE {
namespace {

template <class T>
void Elements(std::span<const T* const> x, T* y, int64_t begin, int64_t end) {
  const hn::ScalableTag<T> d;
  const auto lowest = hn::Set(d, -std::numeric_limits<T>::infinity());
  const auto log_count = hn::Set(d, static_cast<T>(std::log(static_cast<double>(x.size()))));
  ForEachVector(d, static_cast<size_t>(end - begin), [&](size_t i, auto part) HWY_ATTR {
    const size_t at = static_cast<size_t>(begin) + i;
    auto largest = lowest;
    for (const T* of : x) largest = hn::Max(largest, part.Load(d, of + at));
    const auto shift = hn::IfThenElse(hn::Eq(largest, lowest), hn::Zero(d), largest);
    auto sum = hn::Zero(d);
    for (const T* of : x) sum = hn::Add(sum, ExpOf(d, hn::Sub(part.Load(d, of + at), shift)));
    const auto log = hn::Sub(hn::Add(shift, hn::Log(d, sum)), log_count);
    // Highway's logarithm knows neither 0 nor NaN.
    const auto number = hn::IfThenElse(hn::Eq(sum, hn::Zero(d)), lowest, log);
    part.Store(d, hn::IfThenElse(hn::IsNaN(sum), sum, number), y + at);
  });
}

void Elements32(std::span<const float* const> x, float* y, int64_t begin, int64_t end) {
  Elements(x, y, begin, end);
}
void Elements64(std::span<const double* const> x, double* y, int64_t begin, int64_t end) {
  Elements(x, y, begin, end);
}

}  // namespace
// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attune
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attune {
namespace {

HWY_EXPORT(Elements32);
HWY_EXPORT(Elements64);

}  // namespace

void log_mean_exp(Cpu, std::span<const Tensor> x, const Tensor& y) {
  dispatch_floating("log_mean_exp", y.dtype(), [&]<class T>(T) {
    std::vector<const T*> from;
    for (const Tensor& of : x) from.push_back(of.data<T>());
    T* const to = y.data<T>();
    parallel_for(y.numel(), row_grain(1), [&](int64_t begin, int64_t end) {
      for_type<T>(HWY_DYNAMIC_DISPATCH(Elements32), HWY_DYNAMIC_DISPATCH(Elements64))(from, to, begin, end);
    });
  });
}

}  // namespace attune
#endif
