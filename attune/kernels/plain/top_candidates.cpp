#include "attune/kernels/top_candidates.h"

#include <limits>

namespace attune {
namespace {

// Returns log(sum(exp(x))) of a row; NaN or infinite if the row is no distribution.
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

}  // namespace

int64_t top_candidates(Plain, const CandidateRow& row, const CandidateQuery& query, std::span<Candidate> room) {
  std::vector<int32_t> merged;
  const std::span<const int32_t> excluded = excluded_of(query, merged);
  return dispatch_floating("top_candidates", row.logits.dtype(), [&]<class T>(T) -> int64_t {
    const T* const x = row.logits.data<T>() + row.row * row.logits.size(1);
    const double log_sum = log_sum_of(x, row.size);
    if (!std::isfinite(log_sum)) return -1;
    const auto log_probability = [&](int32_t token) { return static_cast<double>(x[token]) - log_sum; };
    std::vector<Candidate> all;
    for (int32_t token = 0; token < row.size; ++token) {
      if (!std::binary_search(excluded.begin(), excluded.end(), token) && std::isfinite(log_probability(token)))
        all.push_back({token, log_probability(token)});
    }
    std::stable_sort(all.begin(), all.end(), [](const Candidate& left, const Candidate& right) {
      return left.log_probability > right.log_probability;
    });
    size_t found = std::min(all.size(), static_cast<size_t>(std::min(query.count, row.size)));
    std::copy_n(all.begin(), found, room.begin());
    if (query.rules != nullptr) found = append_wanted(*query.rules, excluded, log_probability, room, found);
    return static_cast<int64_t>(found);
  });
}

void penalize_tokens(Plain, const CandidateRow& row, std::span<const int32_t> tokens, double penalty) {
  dispatch_floating("penalize_tokens", row.logits.dtype(), [&]<class T>(T) {
    T* const x = row.logits.data<T>() + row.row * row.logits.size(1);
    for (const int32_t token : tokens)
      x[token] = static_cast<T>(x[token] > 0 ? x[token] / penalty : x[token] * penalty);
  });
}

}  // namespace attune
