#include "attune/kernels/routing.h"

#include <cmath>

#include "attune/kernels/cuda/numbers.h"
#include "attune/kernels/cuda/runtime/launch.h"
#include "attune/kernels/for_dtype.h"

namespace attune {
namespace {

constexpr int kRoutingThreads = 256;

// How many of the values come before value i: those that are larger, and those that are equal and stand before it.
template <class Values>
ATTUNE_DEVICE int64_t rank_of(const Values& values, int64_t count, int64_t i) {
  int64_t rank = 0;
  for (int64_t j = 0; j < count; ++j) rank += values[j] > values[i] || (values[j] == values[i] && j < i) ? 1 : 0;
  return rank;
}

// One block for each token.
template <class T>
struct RouteForward {
  static constexpr int kThreads = kRoutingThreads;
  RoutingForm form;
  const T* all_scores;
  const T* bias;  // or null
  int32_t* all_chosen;
  T* all_weights;
  int64_t experts;

  // The score of a group from the values of its experts.
  template <class Values>
  ATTUNE_DEVICE double score_of_group(const Values& values, int64_t group) const {
    const int64_t size = experts / form.groups;
    double best = -cuda::infinity<double>(), second = best;
    for (int64_t e = group * size; e < (group + 1) * size; ++e) {
      const double value = values[e];
      second = value > best ? best : value > second ? value : second;
      best = value > best ? value : best;
    }
    return form.group_score == GroupScore::sum_of_two ? best + second : best;
  }

  ATTUNE_DEVICE void operator()(cuda::Thread& thread) const {
    const T* const scores = all_scores + thread.block() * experts;
    int32_t* const chosen = all_chosen + thread.block() * form.experts_per_token;
    T* const weights = all_weights + thread.block() * form.experts_per_token;
    auto values = thread.shared<double>(experts);
    auto of_group = thread.shared<double>(form.groups);
    auto of_token = thread.shared<int32_t>(form.experts_per_token);  // its experts, best first
    for (int64_t e = thread.index(); e < experts; e += thread.count()) {
      const T value = bias != nullptr ? scores[e] + bias[e] : scores[e];
      values[e] = std::isnan(value) ? -cuda::infinity<double>() : static_cast<double>(value);
    }
    thread.barrier();
    if (form.groups > 1) {
      for (int64_t g = thread.index(); g < form.groups; g += thread.count()) of_group[g] = score_of_group(values, g);
      thread.barrier();
      const int64_t size = experts / form.groups;
      for (int64_t e = thread.index(); e < experts; e += thread.count())
        if (rank_of(of_group, form.groups, e / size) >= form.top_groups) values[e] = -cuda::infinity<double>();
      thread.barrier();
    }
    for (int64_t e = thread.index(); e < experts; e += thread.count()) {
      const int64_t rank = rank_of(values, experts, e);
      if (rank < form.experts_per_token) of_token[rank] = static_cast<int32_t>(e);
    }
    thread.barrier();
    for (int64_t j = thread.index(); j < form.experts_per_token; j += thread.count()) {
      double sum = kRoutingEpsilon;
      for (int64_t i = 0; i < form.experts_per_token; ++i) sum += scores[of_token[i]];
      chosen[j] = of_token[j];
      weights[j] = static_cast<T>(scores[of_token[j]] / (form.normalised ? sum : 1) * form.scale);
    }
  }
};

// w_j = scale s_j / S with S = the sum of the chosen scores: ds_j = scale / S (dw_j - sum of dw_i s_i / S).
template <class T>
struct RouteBackward {
  RoutingForm form;
  const T* scores;
  const int32_t* chosen;
  const T* d_weights;
  T* d_scores;
  int64_t experts;
  ATTUNE_DEVICE void operator()(int64_t i) const {
    const int64_t token = i / form.experts_per_token, first = token * form.experts_per_token;
    double sum = kRoutingEpsilon, products = 0;
    for (int64_t j = first; j < first + form.experts_per_token; ++j) {
      const double score = scores[token * experts + chosen[j]];
      sum += score;
      products += d_weights[j] * score;
    }
    const double ds = form.normalised ? (d_weights[i] - products / sum) / sum : d_weights[i];
    d_scores[token * experts + chosen[i]] = static_cast<T>(form.scale * ds);
  }
};

}  // namespace

void route_forward(Cuda device, const RoutingForm& form, const RoutingTensors& r) {
  const int64_t experts = r.scores.size(1);
  dispatch_floating("route", r.scores.dtype(), [&]<class T>(T) {
    cuda::launch(device, "route",
                 {.blocks = r.scores.size(0),
                  .threads = cuda::threads_for(experts, kRoutingThreads),
                  .shared_bytes = cuda::shared_bytes_of<double>(experts) + cuda::shared_bytes_of<double>(form.groups) +
                                  cuda::shared_bytes_of<int32_t>(form.experts_per_token)},
                 RouteForward<T>{form, r.scores.data<T>(), data_or_null<T>(r.bias), r.chosen.data<int32_t>(),
                                 r.weights.data<T>(), experts});
  });
}

void route_backward(Cuda device, const RoutingForm& form, const RoutingTensors& r, const Tensor& d_weights,
                    const Tensor& d_scores) {
  cuda::clear(device, d_scores.raw(), d_scores.bytes());
  dispatch_floating("route", r.scores.dtype(), [&]<class T>(T) {
    cuda::for_each_element(device, "route", r.chosen.numel(),
                           RouteBackward<T>{form, r.scores.data<T>(), r.chosen.data<int32_t>(), d_weights.data<T>(),
                                            d_scores.data<T>(), r.scores.size(1)});
  });
}

}  // namespace attune
