#include "attune/kernels/machine_peak.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attune/kernels/cpu/machine_peak.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "attune/base/parallel.h"

HWY_BEFORE_NAMESPACE();
namespace attune {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Forms twelve independent sums, enough to hide the latency of a multiply-add. Returns the number of operations.
int64_t MultiplyAdds(int64_t rounds, float* sink) {
  const hn::ScalableTag<float> d;
  const auto factor = hn::Set(d, 0.999f), term = hn::Set(d, 1e-3f);
  // The sums begin with different values: the compiler would compute equal ones once.
  auto a = hn::Iota(d, 0.5f), b = hn::Iota(d, 1.5f), c = hn::Iota(d, 2.5f), e = hn::Iota(d, 3.5f),
       f = hn::Iota(d, 4.5f), g = hn::Iota(d, 5.5f), h = hn::Iota(d, 6.5f), i = hn::Iota(d, 7.5f),
       j = hn::Iota(d, 8.5f), k = hn::Iota(d, 9.5f), l = hn::Iota(d, 10.5f), m = hn::Iota(d, 11.5f);
  for (int64_t r = 0; r < rounds; ++r) {
    a = hn::MulAdd(a, factor, term);
    b = hn::MulAdd(b, factor, term);
    c = hn::MulAdd(c, factor, term);
    e = hn::MulAdd(e, factor, term);
    f = hn::MulAdd(f, factor, term);
    g = hn::MulAdd(g, factor, term);
    h = hn::MulAdd(h, factor, term);
    i = hn::MulAdd(i, factor, term);
    j = hn::MulAdd(j, factor, term);
    k = hn::MulAdd(k, factor, term);
    l = hn::MulAdd(l, factor, term);
    m = hn::MulAdd(m, factor, term);
  }
  const auto sum = hn::Add(hn::Add(hn::Add(a, b), hn::Add(c, e)), hn::Add(hn::Add(f, g), hn::Add(h, i)));
  *sink = hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(sum, hn::Add(j, k)), hn::Add(l, m))));
  return rounds * 12 * 2 * static_cast<int64_t>(hn::Lanes(d));
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attune
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attune {

HWY_EXPORT(MultiplyAdds);

double measured_peak_flops(double seconds) {
  using Clock = std::chrono::steady_clock;
  double best = 0;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  do {
    std::atomic<int64_t> operations{0};
    const auto begin = Clock::now();
    parallel_for(thread_count(), 1, [&](int64_t, int64_t) {
      float sink = 0;
      operations += HWY_DYNAMIC_DISPATCH(MultiplyAdds)(2'000'000, &sink);
      if (sink == 12345.0f) operations += 1;  // uses the sums, so that the compiler keeps them
    });
    best =
        std::max(best, static_cast<double>(operations) / std::chrono::duration<double>(Clock::now() - begin).count());
  } while (Clock::now() < end);
  return best;
}

}  // namespace attune
#endif  // HWY_ONCE
