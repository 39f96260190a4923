#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attune/kernels/cpu/reduce.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <numeric>
#include <vector>

#include "attune/base/parallel.h"
#include "attune/base/rounding.h"
#include "attune/kernels/cpu/for_type.h"
#include "attune/kernels/cpu/simd_inl.h"
#include "attune/kernels/reduce.h"

HWY_BEFORE_NAMESPACE();
namespace attune {
namespace HWY_NAMESPACE {
namespace {

double Squares64(const double* x, int64_t n) {
  const hn::ScalableTag<double> d;
  double total[1];
  Sums(d, static_cast<size_t>(n), total, [&](size_t i, auto part, auto& sums) HWY_ATTR {
    const auto v = part.Load(d, x + i);
    sums[0] = hn::MulAdd(v, v, sums[0]);
  });
  return total[0];
}

double Squares32(const float* x, int64_t n) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> half;  // as many floats as there are doubles in a vector
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<decltype(d)> sums[4] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    for (int k = 0; k < 4; ++k) {
      const auto v = hn::PromoteTo(d, hn::LoadU(half, x + i + k * lanes));
      sums[k] = hn::MulAdd(v, v, sums[k]);
    }
  }
  double rest = 0;
  for (; i < n; ++i) rest += static_cast<double>(x[i]) * x[i];
  const auto sum = hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3]));
  return hn::GetLane(hn::SumOfLanes(d, sum)) + rest;
}

}  // namespace
// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attune
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attune {
namespace {

HWY_EXPORT(Squares32);
HWY_EXPORT(Squares64);

template <class T, class Kernel>
double by_blocks(Kernel kernel, const T* x, int64_t n) {
  constexpr int64_t kBlock = 1 << 16;
  std::vector<double> partial(static_cast<size_t>(divide_up(n, kBlock)));
  parallel_for(n, kBlock, [&](int64_t begin, int64_t end) {
    partial[static_cast<size_t>(begin / kBlock)] = kernel(x + begin, end - begin);
  });
  return std::accumulate(partial.begin(), partial.end(), 0.0);
}

}  // namespace

double sum_of_squares(Cpu, const Tensor& x) {
  return dispatch_floating("sum_of_squares", x.dtype(), [&]<class T>(T) {
    return by_blocks(for_type<T>(HWY_DYNAMIC_DISPATCH(Squares32), HWY_DYNAMIC_DISPATCH(Squares64)), x.data<T>(),
                     x.numel());
  });
}

}  // namespace attune
#endif
