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

template <class T>
int64_t find(const CandidateJob& job) {
  const CandidateQuery& query = job.query;
  T* const x = job.row.logits.data<T>() + job.row.row * job.row.logits.size(1);
  for (const int32_t token : query.penalized)
    x[token] = static_cast<T>(x[token] > 0 ? x[token] / query.penalty : x[token] * query.penalty);
  std::vector<int32_t> merged;
  const std::span<const int32_t> excluded = excluded_of(query, merged);
  if (renormalizes(query))
    for (const int32_t token : excluded)
      if (token >= 0 && token < job.row.size) x[token] = -std::numeric_limits<T>::infinity();
  const double log_sum = log_sum_of(x, job.row.size);
  if (!std::isfinite(log_sum)) return -1;
  const auto log_probability = [&](int32_t token) { return static_cast<double>(x[token]) - log_sum; };
  std::vector<Candidate> all;
  for (int32_t token = 0; token < job.row.size; ++token) {
    if (!std::binary_search(excluded.begin(), excluded.end(), token) && std::isfinite(log_probability(token)))
      all.push_back({token, log_probability(token)});
  }
  std::stable_sort(all.begin(), all.end(), [](const Candidate& left, const Candidate& right) {
    return left.log_probability > right.log_probability;
  });
  size_t found = std::min(all.size(), static_cast<size_t>(std::min(query.count, job.row.size)));
  std::copy_n(all.begin(), found, job.room.begin());
  if (query.rules != nullptr) found = append_wanted(*query.rules, excluded, log_probability, job.room, found);
  return static_cast<int64_t>(found);
}

}  // namespace

void top_candidates(Plain, std::span<CandidateJob> jobs) {
  for (CandidateJob& job : jobs)
    dispatch_floating("top_candidates", job.row.logits.dtype(), [&]<class T>(T) { job.found = find<T>(job); });
}

}  // namespace attune
