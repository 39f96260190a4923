
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attune/kernels/cpu/top_candidates.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

#include <algorithm>
#include <cmath>

#include "attune/kernels/cpu/softmax_inl.h"
#include "attune/kernels/top_candidates.h"

HWY_BEFORE_NAMESPACE();
namespace attune {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Logits of a block. A block stays in the innermost cache, so that logits are read from memory once.
constexpr size_t kBlock = 1024;

struct Better {
  bool operator()(const Candidate& a, const Candidate& b) const {
    return a.log_probability != b.log_probability ? a.log_probability > b.log_probability : a.token < b.token;
  }
};

// The likeliest tokens so far, a heap with the worst on top. `excluded` is sorted. Tokens are offered in rising order,
// so that a token never displaces an earlier one with the same logit.
template <class T>
struct TopOfRow {
  std::span<Candidate> heap;
  std::span<const int32_t> excluded;
  size_t count = 0;
  T threshold = -std::numeric_limits<T>::infinity();

  HWY_NOINLINE void Offer(int32_t token, T logit) {
    if (heap.empty()) return;
    if (std::binary_search(excluded.begin(), excluded.end(), token)) return;
    const auto begin = heap.begin();
    if (count == heap.size()) std::pop_heap(begin, begin + static_cast<std::ptrdiff_t>(count--), Better());
    heap[count++] = {token, static_cast<double>(logit)};
    const auto end = begin + static_cast<std::ptrdiff_t>(count);
    std::push_heap(begin, end, Better());
    if (count == heap.size()) threshold = static_cast<T>(heap.front().log_probability);
  }
};

// Offers the logits above the threshold, which almost no vector has, and returns the largest logit.
template <class T>
HWY_INLINE T OfferBlock(const T* x, size_t n, int32_t first, TopOfRow<T>& top) {
  const hn::ScalableTag<T> d;
  const size_t lanes = hn::Lanes(d);
  auto most = hn::Set(d, -std::numeric_limits<T>::infinity());
  const auto offer = [&](size_t begin, size_t end) {
    for (size_t j = begin; j < end; ++j)
      if (x[j] > top.threshold) top.Offer(first + static_cast<int32_t>(j), x[j]);
  };
  size_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    const auto larger = hn::Max(hn::Max(hn::LoadU(d, x + i), hn::LoadU(d, x + i + lanes)),
                                hn::Max(hn::LoadU(d, x + i + 2 * lanes), hn::LoadU(d, x + i + 3 * lanes)));
    most = hn::Max(most, larger);
    if (!hn::AllFalse(d, hn::Gt(larger, hn::Set(d, top.threshold)))) offer(i, i + 4 * lanes);
  }
  T largest = hn::GetLane(hn::MaxOfLanes(d, most));
  offer(i, n);
  for (; i < n; ++i) largest = std::max(largest, x[i]);
  return largest;
}

// Returns sum(exp(x - shift)) for x up to `shift`, NaN if an x is NaN. The relative error of a term is at most 2e-7.
double SumOfExponentialsOf(const double* x, double shift, size_t n) {
  return SumOfExponentials(x, shift, n, static_cast<double*>(nullptr));
}
double SumOfExponentialsOf(const float* x, float shift, size_t n) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> integers;
  const auto from = hn::Set(d, shift);
  const auto least = hn::Set(d, -86.0f);  // smaller terms do not change a float32 sum, and exponents stay normal
  const auto log2_e = hn::Set(d, 1.44269504089f);
  const auto rounder = hn::Set(d, 12582912.0f);  // 1.5 * 2^23: adding it rounds a number to an integer in the low bits
  auto bad = hn::MaskFromVec(hn::Zero(d));
  float total[1];
  Sums(d, n, total, [&](size_t i, auto part, auto& sums) HWY_ATTR {
    const auto difference = hn::Sub(part.Load(d, x + i), from);
    bad = hn::Or(bad, hn::IsNaN(difference));
    const auto bounded = hn::Max(difference, least);
    const auto shifted = hn::MulAdd(bounded, log2_e, rounder);
    const auto fraction = hn::MulSub(bounded, log2_e, hn::Sub(shifted, rounder));  // in [-1/2, 1/2]
    // 2^fraction: a minimax polynomial with a relative error below 1e-7; it is 1 at 0.
    constexpr float kPowerOfTwo[] = {1.0f, 0.6931470037f, 0.2402224243f, 0.0555073395f, 0.0096715139f, 0.0013264715f};
    const auto power = Polynomial(d, fraction, kPowerOfTwo);
    const auto e =
        hn::BitCast(d, hn::Add(hn::BitCast(integers, power), hn::ShiftLeft<23>(hn::BitCast(integers, shifted))));
    sums[0] = hn::Add(sums[0], part.OrElse(d, e, 0.0f));
  });
  if (!hn::AllFalse(d, bad)) return std::numeric_limits<double>::quiet_NaN();
  return total[0];
}

// Finds log(sum(exp(x))) and the likeliest tokens. The sum is NaN if a logit is NaN.
template <class T>
size_t Row(const T* x, size_t n, std::span<Candidate> heap, std::span<const int32_t> excluded, double* log_sum) {
  TopOfRow<T> top{heap, excluded};
  T shift = -std::numeric_limits<T>::infinity();  // the largest so far
  double sum = 0;
  for (size_t begin = 0; begin < n; begin += kBlock) {
    const size_t size = std::min(kBlock, n - begin);
    const T largest = OfferBlock(x + begin, size, static_cast<int32_t>(begin), top);
    if (largest > shift) {
      sum *= std::exp(static_cast<double>(shift - largest));  // before the first block: 0 * 0
      shift = largest;
    }
    const T from = shift == -std::numeric_limits<T>::infinity() ? T{0} : shift;
    sum += SumOfExponentialsOf(x + begin, from, size);
  }
  *log_sum = static_cast<double>(shift) + std::log(sum);
  const std::span<Candidate> found = heap.first(top.count);
  std::sort_heap(found.begin(), found.end(), Better());
  for (Candidate& c : found) c.log_probability -= *log_sum;
  return found.size();
}

size_t Row32(const float* x, size_t n, std::span<Candidate> heap, std::span<const int32_t> excluded, double* log_sum) {
  return Row(x, n, heap, excluded, log_sum);
}
size_t Row64(const double* x, size_t n, std::span<Candidate> heap, std::span<const int32_t> excluded, double* log_sum) {
  return Row(x, n, heap, excluded, log_sum);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attune
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attune {
namespace {

HWY_EXPORT(Row32);
HWY_EXPORT(Row64);

size_t top_of_row(const float* x, size_t n, std::span<Candidate> heap, std::span<const int32_t> excluded,
                  double* log_sum) {
  return HWY_DYNAMIC_DISPATCH(Row32)(x, n, heap, excluded, log_sum);
}
size_t top_of_row(const double* x, size_t n, std::span<Candidate> heap, std::span<const int32_t> excluded,
                  double* log_sum) {
  return HWY_DYNAMIC_DISPATCH(Row64)(x, n, heap, excluded, log_sum);
}

template <class T>
int64_t find(const CandidateJob& job) {
  const CandidateQuery& query = job.query;
  T* const x = job.row.logits.data<T>() + job.row.row * job.row.logits.size(1);
  for (const int32_t token : query.penalized)
    x[token] *= static_cast<T>(x[token] > 0 ? 1 / query.penalty : query.penalty);
  std::vector<int32_t> merged;
  const std::span<const int32_t> excluded = excluded_of(query, merged);
  if (renormalizes(query))
    for (const int32_t token : excluded)
      if (token >= 0 && token < job.row.size) x[token] = -std::numeric_limits<T>::infinity();
  const auto heap = job.room.first(static_cast<size_t>(std::min(query.count, job.row.size)));
  double log_sum = 0;
  const size_t found = top_of_row(x, static_cast<size_t>(job.row.size), heap, excluded, &log_sum);
  if (!std::isfinite(log_sum)) return -1;
  if (query.rules == nullptr) return static_cast<int64_t>(found);
  const auto log_probability = [&](int32_t token) { return static_cast<double>(x[token]) - log_sum; };
  return static_cast<int64_t>(append_wanted(*query.rules, excluded, log_probability, job.room, found));
}

}  // namespace

void top_candidates(Cpu, std::span<CandidateJob> jobs) {
  for (CandidateJob& job : jobs)
    dispatch_floating("top_candidates", job.row.logits.dtype(), [&]<class T>(T) { job.found = find<T>(job); });
}

}  // namespace attune
#endif  // HWY_ONCE
