#include "attune/kernels/top_candidates.h"

#include <cmath>
#include <vector>

#include "attune/kernels/cuda/launch.h"
#include "attune/kernels/cuda/numbers.h"
#include "attune/kernels/cuda/tables.h"

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

// One block for the row. Each round takes the best of what is left.
template <class T>
struct TopCandidates {
  static constexpr int kThreads = 1024;
  const T* x;
  int64_t size, count, excluded_count, wanted_count;
  const int32_t* excluded;  // ascending
  const int32_t* wanted;
  Found* found;     // [count + wanted_count]
  double* log_sum;  // NaN or infinite if the row is no distribution

  ATTUNE_DEVICE void operator()(cuda::Thread& thread) const {
    sum_up(thread);
    Found last{0, -1};
    for (int64_t round = 0; round < count; ++round) {
      Found best{0, -1};
      for (int64_t i = thread.index(); i < size; i += thread.count())
        if (comes_after(last, i) && !is_excluded(i)) best = Better{}(best, Found{static_cast<double>(x[i]), i});
      last = thread.reduce(best, Better{});
      if (thread.index() == 0) found[round] = last;
      if (last.token >= 0) continue;
      for (int64_t i = round + thread.index(); i < count; i += thread.count()) found[i] = last;
      break;
    }
    for (int64_t i = thread.index(); i < wanted_count; i += thread.count())
      found[count + i] = {static_cast<double>(x[wanted[i]]), wanted[i]};
  }

  ATTUNE_DEVICE void sum_up(cuda::Thread& thread) const {
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
    if (thread.index() == 0) *log_sum = invalid > 0 ? cuda::infinity<double>() : largest + std::log(sum);
  }

  // Whether token i was not taken in an earlier round, of which `last` was the last.
  ATTUNE_DEVICE bool comes_after(const Found& last, int64_t i) const {
    if (last.token < 0) return true;
    const auto logit = static_cast<double>(x[i]);
    return logit < last.logit || (logit == last.logit && i > last.token);
  }

  ATTUNE_DEVICE bool is_excluded(int64_t i) const {
    int64_t begin = 0, end = excluded_count;
    while (begin < end) {
      const int64_t middle = (begin + end) / 2;
      if (excluded[middle] < i) {
        begin = middle + 1;
      } else {
        end = middle;
      }
    }
    return begin < excluded_count && excluded[begin] == i;
  }
};

template <class T>
struct Penalize {
  T* x;
  const int32_t* tokens;
  double penalty;
  ATTUNE_DEVICE void operator()(int64_t i) const {
    T& logit = x[tokens[i]];
    const auto value = static_cast<double>(logit);
    logit = static_cast<T>(value > 0 ? value / penalty : value * penalty);
  }
};

template <class T>
T* row_of(const CandidateRow& row) {
  return row.logits.data<T>() + row.row * row.logits.size(1);
}

}  // namespace

int64_t top_candidates(Cuda device, const CandidateRow& row, const CandidateQuery& query, std::span<Candidate> room) {
  std::vector<int32_t> merged;
  const std::span<const int32_t> excluded = excluded_of(query, merged);
  const std::span<const int32_t> wanted =
      query.rules != nullptr ? std::span<const int32_t>(query.rules->wanted) : std::span<const int32_t>{};
  const int64_t count = std::min(query.count, row.size), numbers = count + std::ssize(wanted);
  const Tensor excluded_table = cuda::on_device(device, excluded), wanted_table = cuda::on_device(device, wanted);
  const Tensor results = Tensor::empty({1 + 2 * numbers}, {DType::f64, Device(device)});
  dispatch_floating("top_candidates", row.logits.dtype(), [&]<class T>(T) {
    using Kernel = TopCandidates<T>;
    double* const begin = results.data<double>();
    cuda::launch(device, "top_candidates", {.blocks = 1, .threads = cuda::threads_for(row.size, Kernel::kThreads)},
                 Kernel{row_of<T>(row), row.size, count, std::ssize(excluded), std::ssize(wanted),
                        excluded_table.data<int32_t>(), wanted_table.data<int32_t>(),
                        reinterpret_cast<Found*>(begin + 1), begin});
  });
  std::vector<double> host(static_cast<size_t>(results.numel()));
  cuda::copy_to_host(device, results.raw(), host.data(), results.bytes());
  const double log_sum = host[0];
  if (!std::isfinite(log_sum)) return -1;
  std::vector<Found> found(static_cast<size_t>(numbers));
  std::memcpy(found.data(), host.data() + 1, found.size() * sizeof(Found));
  size_t used = 0;
  for (size_t i = 0; i < static_cast<size_t>(count); ++i)
    if (found[i].token >= 0 && std::isfinite(found[i].logit - log_sum))
      room[used++] = {static_cast<int32_t>(found[i].token), found[i].logit - log_sum};
  if (query.rules == nullptr) return static_cast<int64_t>(used);
  const auto log_probability = [&](int32_t token) {
    for (size_t i = static_cast<size_t>(count); i < found.size(); ++i)
      if (found[i].token == token) return found[i].logit - log_sum;
    return -HUGE_VAL;  // not wanted: nobody asks
  };
  return static_cast<int64_t>(append_wanted(*query.rules, excluded, log_probability, room, used));
}

void penalize_tokens(Cuda device, const CandidateRow& row, std::span<const int32_t> tokens, double penalty) {
  const Tensor table = cuda::on_device(device, tokens);
  dispatch_floating("penalize_tokens", row.logits.dtype(), [&]<class T>(T) {
    cuda::for_each_element(device, "penalize_tokens", std::ssize(tokens),
                           Penalize<T>{row_of<T>(row), table.data<int32_t>(), penalty});
  });
}

}  // namespace attune
