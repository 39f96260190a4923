#include "attune/kernels/top_candidates.h"

#include <limits>

namespace attune {
namespace {

// log(sum(exp(x))) of a row; NaN or infinite where there is no distribution.
template <class T>
double log_sum_of(const T* x, int64_t vocab) {
  double largest = -std::numeric_limits<double>::infinity(), sum = 0;
  for (int64_t i = 0; i < vocab; ++i) {
    if (!(x[i] < std::numeric_limits<T>::infinity())) return std::numeric_limits<double>::quiet_NaN();
    largest = std::max(largest, static_cast<double>(x[i]));
  }
  for (int64_t i = 0; i < vocab; ++i) sum += std::exp(x[i] - largest);
  return largest + std::log(sum);
}

template <class T>
bool fill_row(const TopCandidates& a, size_t row, CandidateLists& lists) {
  const int64_t vocab = a.logits.size(1);
  const T* const x = a.logits.data<T>() + static_cast<int64_t>(row) * vocab;
  const double log_sum = log_sum_of(x, vocab);
  if (!std::isfinite(log_sum)) return false;
  const auto log_probability = [&](int32_t token) { return static_cast<double>(x[token]) - log_sum; };
  const std::vector<int32_t> excluded = excluded_of_row(a, row);
  std::vector<Candidate> all;
  for (int32_t token = 0; token < vocab; ++token) {
    if (!std::binary_search(excluded.begin(), excluded.end(), token) && std::isfinite(log_probability(token)))
      all.push_back({token, log_probability(token)});
  }
  std::stable_sort(all.begin(), all.end(), [](const Candidate& left, const Candidate& right) {
    return left.log_probability > right.log_probability;
  });
  const std::span<Candidate> room = lists.room(row);
  size_t found = std::min(all.size(), static_cast<size_t>(std::min(a.count, vocab)));
  std::copy_n(all.begin(), found, room.begin());
  if (!a.rules.empty()) found = append_wanted(a.rules[row], excluded, log_probability, room, found);
  lists.set_count(row, found);
  return true;
}

}  // namespace

int64_t top_candidates(Plain, const TopCandidates& a, CandidateLists& lists) {
  int64_t failed = -1;
  dispatch_floating("top_candidates", a.logits.dtype(), [&]<class T>(T) {
    for (int64_t row = 0; row < a.logits.size(0); ++row)
      if (!fill_row<T>(a, static_cast<size_t>(row), lists) && failed < 0) failed = row;
  });
  return failed;
}

}  // namespace attune
