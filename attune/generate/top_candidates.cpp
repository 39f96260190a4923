#include "attune/generate/top_candidates.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attune/generate/top_candidates.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

#include <algorithm>
#include <cmath>
#include <functional>

#include "attune/base/parallel.h"
#include "attune/ops/rows.h"
#include "attune/ops/softmax_inl.h"

HWY_BEFORE_NAMESPACE();
namespace attune {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
double LogSumOfExponentials(const T* x, size_t n) {
  const T shift = RowShift(x, n);
  return static_cast<double>(shift) +
         std::log(static_cast<double>(SumOfExponentials(x, shift, n, static_cast<T*>(nullptr))));
}

// visit(i) for each element above the threshold that visit returned last. Almost all vectors hold none.
template <class T, class Visit>
HWY_INLINE void ForEachAbove(const T* x, size_t n, Visit&& visit) {
  const hn::ScalableTag<T> d;
  const size_t lanes = hn::Lanes(d);
  T threshold = -std::numeric_limits<T>::infinity();
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    if (hn::AllFalse(d, hn::Gt(hn::LoadU(d, x + i), hn::Set(d, threshold)))) continue;
    for (size_t j = i; j < i + lanes; ++j) {
      if (x[j] > threshold) threshold = visit(j);
    }
  }
  for (; i < n; ++i) {
    if (x[i] > threshold) threshold = visit(i);
  }
}

// A heap with the worst candidate on top; `excluded` is sorted. Tokens come in rising order, so that an equal one never
// displaces another.
template <class T>
std::vector<Candidate> TopOfRow(const T* x, size_t n, size_t count, const std::vector<int32_t>& excluded) {
  const auto better = [](const Candidate& a, const Candidate& b) {
    return a.log_probability != b.log_probability ? a.log_probability > b.log_probability : a.token < b.token;
  };
  std::vector<Candidate> heap;
  heap.reserve(count + 1);
  T threshold = -std::numeric_limits<T>::infinity();
  ForEachAbove(x, n, [&](size_t i) {
    const auto token = static_cast<int32_t>(i);
    if (std::binary_search(excluded.begin(), excluded.end(), token)) return threshold;
    heap.push_back({token, static_cast<double>(x[i])});
    std::push_heap(heap.begin(), heap.end(), better);
    if (heap.size() > count) {
      std::pop_heap(heap.begin(), heap.end(), better);
      heap.pop_back();
    }
    if (heap.size() == count) threshold = static_cast<T>(heap.front().log_probability);
    return threshold;
  });
  std::sort_heap(heap.begin(), heap.end(), better);
  return heap;
}

template <class T>
std::vector<Candidate> Row(const T* x, size_t n, size_t count, const std::vector<int32_t>& excluded, double* log_sum) {
  *log_sum = LogSumOfExponentials(x, n);
  if (!std::isfinite(*log_sum)) return {};
  std::vector<Candidate> top = TopOfRow(x, n, count, excluded);
  for (Candidate& c : top) c.log_probability -= *log_sum;
  return top;
}

std::vector<Candidate> Row32(const float* x, size_t n, size_t count, const std::vector<int32_t>& excluded,
                             double* log_sum) {
  return Row(x, n, count, excluded, log_sum);
}
std::vector<Candidate> Row64(const double* x, size_t n, size_t count, const std::vector<int32_t>& excluded,
                             double* log_sum) {
  return Row(x, n, count, excluded, log_sum);
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

std::vector<Candidate> top_of_row(Cpu, const float* x, size_t n, size_t count, const std::vector<int32_t>& excluded,
                                  double* log_sum) {
  return HWY_DYNAMIC_DISPATCH(Row32)(x, n, count, excluded, log_sum);
}
std::vector<Candidate> top_of_row(Cpu, const double* x, size_t n, size_t count, const std::vector<int32_t>& excluded,
                                  double* log_sum) {
  return HWY_DYNAMIC_DISPATCH(Row64)(x, n, count, excluded, log_sum);
}

void append_wanted(const CandidateRules& rules, const std::vector<int32_t>& excluded,
                   const std::function<double(int32_t)>& log_probability, std::vector<Candidate>& candidates) {
  if (rules.only_wanted) candidates.clear();
  for (const int32_t token : rules.wanted) {
    const auto same = [&](const Candidate& c) { return c.token == token; };
    if (std::any_of(candidates.begin(), candidates.end(), same)) continue;
    if (!rules.only_wanted && std::binary_search(excluded.begin(), excluded.end(), token)) continue;
    if (const double value = log_probability(token); std::isfinite(value)) candidates.push_back({token, value});
  }
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

std::vector<std::vector<Candidate>> top_candidates(const Tensor& logits, int64_t count,
                                                   const std::vector<int32_t>& excluded,
                                                   std::span<const CandidateRules> rules) {
  if (logits.rank() != 2 || count < 1)
    fail<ShapeError>("top_candidates: needs logits [rows, vocab] and a count from 1, found {} and {}",
                     logits.shape().text(), count);
  const int64_t vocab = logits.size(1);
  check_rules(rules, logits.size(0), vocab);
  std::vector<int32_t> never = excluded;
  std::sort(never.begin(), never.end());
  std::vector<std::vector<Candidate>> result(static_cast<size_t>(logits.size(0)));
  dispatch_floating("top_candidates", logits.dtype(), [&]<class T>(T) {
    parallel_for(logits.size(0), row_grain(vocab), [&](int64_t begin, int64_t end) {
      std::vector<int32_t> of_row;
      for (int64_t r = begin; r < end; ++r) {
        const CandidateRules* rule = rules.empty() ? nullptr : &rules[static_cast<size_t>(r)];
        const bool excludes = rule != nullptr && !rule->excluded.empty();
        if (excludes) {
          of_row = never;
          of_row.insert(of_row.end(), rule->excluded.begin(), rule->excluded.end());
          std::sort(of_row.begin(), of_row.end());
        }
        double log_sum = 0;
        const T* x = logits.data<T>() + r * vocab;
        std::vector<Candidate>& candidates = result[static_cast<size_t>(r)];
        candidates = dispatch(logits.device(), [&](auto device) {
          return top_of_row(device, x, static_cast<size_t>(vocab), static_cast<size_t>(std::min(count, vocab)),
                            excludes ? of_row : never, &log_sum);
        });
        if (rule != nullptr)
          append_wanted(
              *rule, excludes ? of_row : never, [&](int32_t token) { return static_cast<double>(x[token]) - log_sum; },
              candidates);
        if (!std::isfinite(log_sum))
          fail<NumericError>("top_candidates: the logits of row {} of {} are not finite", r, logits.shape().text());
      }
    });
  });
  return result;
}

}  // namespace attune
#endif  // HWY_ONCE
