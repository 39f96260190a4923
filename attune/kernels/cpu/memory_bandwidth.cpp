#include "attune/kernels/memory_bandwidth.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attune/kernels/cpu/memory_bandwidth.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

#include <hwy/cache_control.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <string>

#include "attune/base/parallel.h"
#include "attune/tensor/buffer.h"

HWY_BEFORE_NAMESPACE();
namespace attune {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Both kernels take a multiple of four vectors, at addresses that are aligned to vectors.

// Forms four sums, so that loads do not wait for additions.
float Sum(const float* HWY_RESTRICT x, int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto a = hn::Zero(d), b = hn::Zero(d), c = hn::Zero(d), e = hn::Zero(d);
  for (int64_t i = 0; i < n; i += 4 * lanes) {
    a = hn::Add(a, hn::Load(d, x + i));
    b = hn::Add(b, hn::Load(d, x + i + lanes));
    c = hn::Add(c, hn::Load(d, x + i + 2 * lanes));
    e = hn::Add(e, hn::Load(d, x + i + 3 * lanes));
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(a, b), hn::Add(c, e))));
}

// Stores without the caches, so that memory moves as many bytes as are counted. Through the caches each line of `a`
// would be read before it is written.
void Triad(float* HWY_RESTRICT a, const float* HWY_RESTRICT b, const float* HWY_RESTRICT c, int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto factor = hn::Set(d, 0.5f);
  for (int64_t i = 0; i < n; i += lanes)
    hn::Stream(hn::MulAdd(factor, hn::Load(d, c + i), hn::Load(d, b + i)), d, a + i);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attune
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attune {
namespace {

HWY_EXPORT(Sum);
HWY_EXPORT(Triad);

constexpr int64_t kPiece = 1 << 18;  // floats; a multiple of four vectors on every machine
constexpr int64_t kMiB = int64_t{1} << 20;

// Parses Linux's description of the first processor's caches, such as "32768K"; the largest cache has the highest
// index. sysconf() describes the whole package instead, of which a virtual machine may have only a part.
int64_t last_level_cache_bytes() {
  int64_t bytes = 0;
  for (int index = 0;; ++index) {
    std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/size");
    int64_t kilobytes = 0;
    if (!(file >> kilobytes)) return bytes;
    bytes = kilobytes * 1024;
  }
}

// Runs at least twice, because the first run is slower.
template <class Pass>
double best_rate(double seconds, int64_t bytes, const Pass& pass) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  double best = 0;
  for (int repetition = 0; repetition < 2 || Clock::now() < end; ++repetition) {
    const auto begin = Clock::now();
    pass();
    best = std::max(best, static_cast<double>(bytes) / std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return best;
}

}  // namespace

MemoryBandwidth measured_memory_bandwidth(double seconds) {
  MemoryBandwidth result{.last_level_cache_bytes = last_level_cache_bytes()};
  result.buffer_bytes = std::clamp(4 * result.last_level_cache_bytes, 128 * kMiB, 512 * kMiB) / kMiB * kMiB;
  const auto bytes = static_cast<size_t>(result.buffer_bytes);
  const auto n = static_cast<int64_t>(bytes / sizeof(float));
  const auto a_buffer = allocate_buffer(bytes), b_buffer = allocate_buffer(bytes), c_buffer = allocate_buffer(bytes);
  auto* a = static_cast<float*>(a_buffer->data());
  auto* b = static_cast<float*>(b_buffer->data());
  auto* c = static_cast<float*>(c_buffer->data());
  parallel_for(n, kPiece, [&](int64_t begin, int64_t end) {
    std::fill(a + begin, a + end, 0.0f);
    std::fill(b + begin, b + end, 1.0f);
    std::fill(c + begin, c + end, 2.0f);
  });
  std::atomic<int64_t> odd{0};  // uses the sums, so that the compiler keeps them
  result.read = best_rate(seconds, result.buffer_bytes, [&] {
    parallel_for(n, kPiece, [&](int64_t begin, int64_t end) {
      if (HWY_DYNAMIC_DISPATCH(Sum)(b + begin, end - begin) == 12345.0f) ++odd;
    });
  });
  result.triad = best_rate(seconds, 3 * result.buffer_bytes, [&] {
    parallel_for(n, kPiece, [&](int64_t begin, int64_t end) {
      HWY_DYNAMIC_DISPATCH(Triad)(a + begin, b + begin, c + begin, end - begin);
      hwy::FlushStream();
    });
  });
  return result;
}

}  // namespace attune
#endif  // HWY_ONCE
