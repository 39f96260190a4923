#include "attune/kernels/top_candidates.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "attune/kernels/cuda/numbers.h"
#include "attune/kernels/cuda/runtime/launch.h"
#include "attune/kernels/cuda/tables.h"
#include "attune/kernels/cuda/token_lists.h"

namespace attune {
namespace {

// What the host gets of a row: `count` tokens with their logits, then the logits of the wanted tokens.
struct Found {
  double logit;
  int64_t token;  // -1: there is none left
};

// The larger logit; of equal ones the lower token.
struct Better {
  ATTUNE_DEVICE Found operator()(const Found& a, const Found& b) const {
    if (a.token < 0 || b.token < 0) return a.token < 0 ? b : a;
    if (a.logit == b.logit) return a.token < b.token ? a : b;
    return a.logit > b.logit ? a : b;
  }
};

template <class T>
struct RowJob {
  T* x;
  int64_t size;
  int64_t found;  // where its results begin
  int32_t count;
  cuda::TokenList excluded, wanted, penalized;  // `excluded` is ascending
  bool renormalize;
  double penalty;
};

// A block for each row. Each round takes the best of what is left.
template <class T>
struct TopCandidates {
  static constexpr int kThreads = 1024;
  const RowJob<T>* jobs;
  const int32_t* lists;
  Found* found;      // of each row [count + wanted]
  double* log_sums;  // [rows]

  ATTUNE_DEVICE void operator()(cuda::Thread& thread) const {
    const RowJob<T>& job = jobs[thread.block()];
    const T* const x = job.x;
    const int32_t* const excluded = lists + job.excluded.begin;
    Found* const results = found + job.found;
    penalize(thread, job, lists + job.penalized.begin);
    thread.barrier();
    if (job.renormalize) {
      for (int32_t i = thread.index(); i < job.excluded.count; i += thread.count())
        if (excluded[i] >= 0 && excluded[i] < job.size) job.x[excluded[i]] = -cuda::infinity<T>();
      thread.barrier();
    }
    const double log_sum = log_sum_of(thread, x, job.size);
    if (thread.index() == 0) log_sums[thread.block()] = log_sum;
    Found last{0, -1};
    for (int32_t round = 0; round < job.count; ++round) {
      Found best{0, -1};
      for (int64_t i = thread.index(); i < job.size; i += thread.count())
        if (comes_after(last, static_cast<double>(x[i]), i) && !is_excluded(excluded, job.excluded.count, i))
          best = Better{}(best, Found{static_cast<double>(x[i]), i});
      last = thread.reduce(best, Better{});
      if (thread.index() == 0) results[round] = last;
      if (last.token >= 0) continue;
      for (int32_t i = round + thread.index(); i < job.count; i += thread.count()) results[i] = last;
      break;
    }
    for (int32_t i = thread.index(); i < job.wanted.count; i += thread.count()) {
      const int32_t token = lists[job.wanted.begin + i];
      results[job.count + i] = {static_cast<double>(x[token]), token};
    }
  }

  ATTUNE_DEVICE static void penalize(const cuda::Thread& thread, const RowJob<T>& job, const int32_t* tokens) {
    for (int32_t i = thread.index(); i < job.penalized.count; i += thread.count()) {
      T& logit = job.x[tokens[i]];
      const auto value = static_cast<double>(logit);
      logit = static_cast<T>(value > 0 ? value / job.penalty : value * job.penalty);
    }
  }

  /// Returns log(sum(exp(x))); infinite or NaN if the row is no distribution.
  ATTUNE_DEVICE static double log_sum_of(cuda::Thread& thread, const T* x, int64_t size) {
    double largest = -cuda::infinity<double>(), invalid = 0;
    for (int64_t i = thread.index(); i < size; i += thread.count()) {
      if (!(x[i] < cuda::infinity<T>())) invalid = 1;
      if (largest < static_cast<double>(x[i])) largest = static_cast<double>(x[i]);
    }
    largest = thread.reduce(largest, cuda::Largest{});
    invalid = thread.reduce(invalid, cuda::Largest{});
    double sum = 0;
    for (int64_t i = thread.index(); i < size; i += thread.count())
      sum += std::exp(static_cast<double>(x[i]) - largest);
    sum = thread.reduce(sum, cuda::Sum{});
    return invalid > 0 ? cuda::infinity<double>() : largest + std::log(sum);
  }

  // Whether token i was not taken in an earlier round, of which `last` was the last.
  ATTUNE_DEVICE static bool comes_after(const Found& last, double logit, int64_t i) {
    if (last.token < 0) return true;
    return logit < last.logit || (logit == last.logit && i > last.token);
  }

  ATTUNE_DEVICE static bool is_excluded(const int32_t* excluded, int32_t count, int64_t i) {
    int32_t begin = 0, end = count;
    while (begin < end) {
      const int32_t middle = (begin + end) / 2;
      if (excluded[middle] < i) {
        begin = middle + 1;
      } else {
        end = middle;
      }
    }
    return begin < count && excluded[begin] == i;
  }
};

std::span<const int32_t> wanted_of(const CandidateJob& job) {
  if (job.query.rules == nullptr) return {};
  return job.query.rules->wanted;
}

// Writes a row's candidates into its room. Returns how many there are, or -1 if the row is no distribution.
int64_t take(const CandidateJob& job, std::span<const int32_t> excluded, std::span<const Found> found, double log_sum) {
  if (!std::isfinite(log_sum)) return -1;
  const size_t wanted = wanted_of(job).size();
  size_t used = 0;
  for (const Found& f : found.first(found.size() - wanted))
    if (f.token >= 0 && std::isfinite(f.logit - log_sum))
      job.room[used++] = {static_cast<int32_t>(f.token), f.logit - log_sum};
  if (job.query.rules == nullptr) return static_cast<int64_t>(used);
  const auto log_probability = [&](int32_t token) {
    for (const Found& f : found.last(wanted))
      if (f.token == token) return f.logit - log_sum;
    return -HUGE_VAL;  // not wanted: nobody asks
  };
  return static_cast<int64_t>(append_wanted(*job.query.rules, excluded, log_probability, job.room, used));
}

template <class T>
void find(Cuda device, std::span<CandidateJob> jobs) {
  std::vector<int32_t> lists;
  std::vector<std::vector<int32_t>> merged(jobs.size());
  std::vector<std::span<const int32_t>> excluded;
  std::vector<RowJob<T>> rows;
  int64_t numbers = 0;
  for (size_t j = 0; j < jobs.size(); ++j) {
    const auto& [row, query, room, ignored] = jobs[j];
    excluded.push_back(excluded_of(query, merged[j]));
    const bool shared = j > 0 && cuda::same_memory(excluded[j], excluded[j - 1]);  // with the previous row
    rows.push_back({.x = row.logits.data<T>() + row.row * row.logits.size(1),
                    .size = row.size,
                    .found = numbers,
                    .count = static_cast<int32_t>(std::min(query.count, row.size)),
                    .excluded = shared ? rows.back().excluded : cuda::append(lists, excluded[j]),
                    .wanted = cuda::append(lists, wanted_of(jobs[j])),
                    .penalized = cuda::append(lists, query.penalized),
                    .renormalize = renormalizes(query),
                    .penalty = query.penalty});
    numbers += rows.back().count + rows.back().wanted.count;
  }
  const Tensor table = cuda::on_device(device, lists);
  const Tensor on_device = cuda::structs_on_device<RowJob<T>>(device, rows);
  const auto count = static_cast<int64_t>(jobs.size());
  const Tensor results = Tensor::empty({count + 2 * numbers}, {DType::f64, Device(device)});
  auto* const log_sums = results.data<double>();
  const auto longest = std::ranges::max_element(rows, {}, &RowJob<T>::size)->size;
  cuda::launch(device, "top_candidates",
               {.blocks = count, .threads = cuda::threads_for(longest, TopCandidates<T>::kThreads)},
               TopCandidates<T>{reinterpret_cast<const RowJob<T>*>(on_device.raw()), table.data<int32_t>(),
                                reinterpret_cast<Found*>(log_sums + count), log_sums});
  std::vector<double> host(static_cast<size_t>(results.numel()));
  cuda::copy_to_host(device, results.raw(), host.data(), results.bytes());
  std::vector<Found> found(static_cast<size_t>(numbers));
  std::memcpy(found.data(), host.data() + jobs.size(), found.size() * sizeof(Found));
  for (size_t j = 0; j < jobs.size(); ++j) {
    const auto begin = static_cast<size_t>(rows[j].found);
    const auto size = static_cast<size_t>(rows[j].count + rows[j].wanted.count);
    jobs[j].found = take(jobs[j], excluded[j], std::span<const Found>(found).subspan(begin, size), host[j]);
  }
}

}  // namespace

void top_candidates(Cuda device, std::span<CandidateJob> jobs) {
  if (jobs.empty()) return;
  dispatch_floating("top_candidates", jobs.front().row.logits.dtype(), [&]<class T>(T) { find<T>(device, jobs); });
}

}  // namespace attune
