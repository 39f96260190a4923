#include "attune/inference/top_candidates.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attune/inference/top_candidates.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

#include <algorithm>
#include <cmath>

#include "attune/base/fail.h"
#include "attune/base/parallel.h"
#include "attune/base/profile.h"
#include "attune/kernels/cpu/softmax_inl.h"
#include "attune/kernels/row_grain.h"
#include "attune/ops/rows.h"

HWY_BEFORE_NAMESPACE();
namespace attune {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Of a row: read in blocks that stay in the innermost cache, so that its logits come from memory but once.
constexpr size_t kBlock = 1024;

struct Better {
  bool operator()(const Candidate& a, const Candidate& b) const {
    return a.log_probability != b.log_probability ? a.log_probability > b.log_probability : a.token < b.token;
  }
};

// The likeliest so far, a heap with the worst on top; `excluded` is sorted. Tokens come in rising order, so that an
// equal one never displaces another.
template <class T>
struct TopOfRow {
  std::span<Candidate> heap;
  const std::vector<int32_t>& excluded;
  size_t count = 0;
  T threshold = -std::numeric_limits<T>::infinity();

  HWY_NOINLINE void Offer(int32_t token, T logit) {
    if (std::binary_search(excluded.begin(), excluded.end(), token)) return;
    const auto begin = heap.begin();
    if (count == heap.size()) std::pop_heap(begin, begin + static_cast<std::ptrdiff_t>(count--), Better());
    heap[count++] = {token, static_cast<double>(logit)};
    const auto end = begin + static_cast<std::ptrdiff_t>(count);
    std::push_heap(begin, end, Better());
    if (count == heap.size()) threshold = static_cast<T>(heap.front().log_probability);
  }
};

// Offers what is above the threshold, which almost no vector has, and returns the largest of all.
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

// sum(exp(x - shift)), NaN where an x is, for x up to `shift`. Its terms are off by 2e-7 of themselves at most.
double SumOfExponentialsOf(const double* x, double shift, size_t n) {
  return SumOfExponentials(x, shift, n, static_cast<double*>(nullptr));
}
double SumOfExponentialsOf(const float* x, float shift, size_t n) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> integers;
  const auto from = hn::Set(d, shift);
  const auto least = hn::Set(d, -86.0f);  // what is below adds nothing that float32 sees; and exponents stay normal
  const auto log2_e = hn::Set(d, 1.44269504089f);
  const auto rounder = hn::Set(d, 12582912.0f);  // 1.5 * 2^23: its sum with a number ends in that number's integer
  auto bad = hn::MaskFromVec(hn::Zero(d));
  float total[1];
  Sums(d, n, total, [&](size_t i, auto part, auto& sums) HWY_ATTR {
    const auto difference = hn::Sub(part.Load(d, x + i), from);
    bad = hn::Or(bad, hn::IsNaN(difference));
    const auto bounded = hn::Max(difference, least);
    const auto shifted = hn::MulAdd(bounded, log2_e, rounder);
    const auto fraction = hn::MulSub(bounded, log2_e, hn::Sub(shifted, rounder));  // in [-1/2, 1/2]
    // 2^fraction: a minimax fit with a relative error below 1e-7, and 1 at 0
    constexpr float kPowerOfTwo[] = {1.0f, 0.6931470037f, 0.2402224243f, 0.0555073395f, 0.0096715139f, 0.0013264715f};
    const auto power = Polynomial(d, fraction, kPowerOfTwo);
    const auto e =
        hn::BitCast(d, hn::Add(hn::BitCast(integers, power), hn::ShiftLeft<23>(hn::BitCast(integers, shifted))));
    sums[0] = hn::Add(sums[0], part.OrElse(d, e, 0.0f));
  });
  if (!hn::AllFalse(d, bad)) return std::numeric_limits<double>::quiet_NaN();
  return total[0];
}

// log(sum(exp(x))) and the likeliest. Where a logit is NaN so is the sum.
template <class T>
size_t Row(const T* x, size_t n, std::span<Candidate> heap, const std::vector<int32_t>& excluded, double* log_sum) {
  TopOfRow<T> top{heap, excluded};
  T shift = -std::numeric_limits<T>::infinity();  // the largest so far
  double sum = 0;
  for (size_t begin = 0; begin < n; begin += kBlock) {
    const size_t size = std::min(kBlock, n - begin);
    const T largest = OfferBlock(x + begin, size, static_cast<int32_t>(begin), top);
    if (largest > shift) {
      sum *= std::exp(static_cast<double>(shift - largest));  // of nothing: 0 * 0
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

size_t Row32(const float* x, size_t n, std::span<Candidate> heap, const std::vector<int32_t>& excluded,
             double* log_sum) {
  return Row(x, n, heap, excluded, log_sum);
}
size_t Row64(const double* x, size_t n, std::span<Candidate> heap, const std::vector<int32_t>& excluded,
             double* log_sum) {
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

size_t top_of_row(Cpu, const float* x, size_t n, std::span<Candidate> heap, const std::vector<int32_t>& excluded,
                  double* log_sum) {
  return HWY_DYNAMIC_DISPATCH(Row32)(x, n, heap, excluded, log_sum);
}
size_t top_of_row(Cpu, const double* x, size_t n, std::span<Candidate> heap, const std::vector<int32_t>& excluded,
                  double* log_sum) {
  return HWY_DYNAMIC_DISPATCH(Row64)(x, n, heap, excluded, log_sum);
}

// After the first `count` of `candidates`; returns how many there are then.
template <class LogProbability>
size_t append_wanted(const CandidateRules& rules, const std::vector<int32_t>& excluded, LogProbability&& of,
                     std::span<Candidate> candidates, size_t count) {
  if (rules.only_wanted) count = 0;
  for (const int32_t token : rules.wanted) {
    const auto same = [&](const Candidate& c) { return c.token == token; };
    const auto there = candidates.first(count);
    if (std::any_of(there.begin(), there.end(), same)) continue;
    if (!rules.only_wanted && std::binary_search(excluded.begin(), excluded.end(), token)) continue;
    if (const double value = of(token); std::isfinite(value)) candidates[count++] = {token, value};
  }
  return count;
}

void check_rules(std::span<const CandidateRules> rules, int64_t rows, int64_t vocab) {
  if (!rules.empty() && static_cast<int64_t>(rules.size()) != rows)
    fail<ShapeError>("top_candidates: {} rules for {} rows", rules.size(), rows);
  for (const CandidateRules& r : rules) {
    for (const int32_t token : r.wanted)
      if (token < 0 || token >= vocab) fail<ShapeError>("top_candidates: wants token {} of {}", token, vocab);
  }
}

}  // namespace

void top_candidates(const Tensor& logits, int64_t count, const std::vector<int32_t>& excluded,
                    std::span<const CandidateRules> rules, CandidateLists& lists) {
  const ProfileScope scope("top_candidates");
  if (logits.rank() != 2 || count < 1)
    fail<ShapeError>("top_candidates: needs logits [rows, vocab] and a count from 1, found {} and {}",
                     logits.shape().text(), count);
  const int64_t vocab = logits.size(1);
  check_rules(rules, logits.size(0), vocab);
  std::vector<int32_t> never = excluded;
  std::sort(never.begin(), never.end());
  const auto most = static_cast<size_t>(std::min(count, vocab));
  size_t most_wanted = 0;
  for (const CandidateRules& rule : rules) most_wanted = std::max(most_wanted, rule.wanted.size());
  lists.reset(static_cast<size_t>(logits.size(0)), most + most_wanted);
  dispatch_floating("top_candidates", logits.dtype(), [&]<class T>(T) {
    parallel_for(logits.size(0), row_grain(vocab), [&](int64_t begin, int64_t end) {
      std::vector<int32_t> of_row;
      for (int64_t r = begin; r < end; ++r) {
        const auto row = static_cast<size_t>(r);
        const CandidateRules* rule = rules.empty() ? nullptr : &rules[row];
        const bool excludes = rule != nullptr && !rule->excluded.empty();
        if (excludes) {
          of_row = never;
          of_row.insert(of_row.end(), rule->excluded.begin(), rule->excluded.end());
          std::sort(of_row.begin(), of_row.end());
        }
        double log_sum = 0;
        const T* x = logits.data<T>() + r * vocab;
        const std::vector<int32_t>& without = excludes ? of_row : never;
        const std::span<Candidate> room = lists.room(row);
        size_t found = dispatch(logits.device(), [&](auto device) {
          return top_of_row(device, x, static_cast<size_t>(vocab), room.first(most), without, &log_sum);
        });
        if (!std::isfinite(log_sum))
          fail<NumericError>("top_candidates: the logits of row {} of {} are not finite", r, logits.shape().text());
        const auto log_probability = [&](int32_t token) { return static_cast<double>(x[token]) - log_sum; };
        if (rule != nullptr) found = append_wanted(*rule, without, log_probability, room, found);
        lists.set_count(row, found);
      }
    });
  });
}

}  // namespace attune
#endif  // HWY_ONCE
