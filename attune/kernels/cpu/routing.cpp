#include "attune/kernels/routing.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "attune/base/parallel.h"
#include "attune/kernels/for_dtype.h"
#include "attune/kernels/row_grain.h"

namespace attune {
namespace {

constexpr int64_t kRoutingElements = 1 << 12;  // scores of a piece: some ten microseconds

// Chooses the experts of one token after the other, in memory that they share.
template <class T>
class Choice {
 public:
  Choice(const RoutingForm& form, const T* bias, int64_t experts)
      : form_(form), bias_(bias), group_size_(experts / form.groups), values_(static_cast<size_t>(experts)) {
    groups_.resize(static_cast<size_t>(form.groups));
  }

  void operator()(const T* scores, int32_t* chosen, T* weights) {
    for (size_t e = 0; e < values_.size(); ++e) {
      const T value = bias_ != nullptr ? scores[e] + bias_[e] : scores[e];
      values_[e] = std::isnan(value) ? kNever : value;
    }
    if (form_.groups > 1) mask_groups();
    const int64_t k = form_.experts_per_token;
    T sum = static_cast<T>(kRoutingEpsilon);
    for (int64_t j = 0; j < k; ++j) {
      const size_t e = take_largest(values_, chosen, j);
      chosen[j] = static_cast<int32_t>(e);
      sum += scores[e];
    }
    const T factor = static_cast<T>(form_.scale) / (form_.normalised ? sum : T{1});
    for (int64_t j = 0; j < k; ++j) weights[j] = scores[chosen[j]] * factor;
  }

 private:
  static constexpr T kNever = -std::numeric_limits<T>::infinity();

  // The index of the largest value that is not among the `taken` ones before; of equal ones the first.
  static size_t take_largest(const std::vector<T>& values, const int32_t* before, int64_t taken) {
    size_t best = values.size();
    for (size_t i = 0; i < values.size(); ++i) {
      if (best < values.size() && !(values[i] > values[best])) continue;
      if (std::find(before, before + taken, static_cast<int32_t>(i)) == before + taken) best = i;
    }
    return best;
  }

  T score_of_group(const T* values) const {
    T best = kNever, second = kNever;
    for (int64_t i = 0; i < group_size_; ++i) {
      second = std::max(second, std::min(best, values[i]));
      best = std::max(best, values[i]);
    }
    return form_.group_score == GroupScore::sum_of_two ? best + second : best;
  }

  void mask_groups() {
    for (size_t g = 0; g < groups_.size(); ++g)
      groups_[g] = score_of_group(values_.data() + static_cast<int64_t>(g) * group_size_);
    best_groups_.clear();
    for (int64_t i = 0; i < form_.top_groups; ++i)
      best_groups_.push_back(static_cast<int32_t>(take_largest(groups_, best_groups_.data(), i)));
    for (int32_t g = 0; g < static_cast<int32_t>(form_.groups); ++g)
      if (std::ranges::find(best_groups_, g) == best_groups_.end())
        std::fill_n(values_.begin() + g * group_size_, group_size_, kNever);
  }

  const RoutingForm& form_;
  const T* bias_;  // or null
  int64_t group_size_;
  std::vector<T> values_, groups_;
  std::vector<int32_t> best_groups_;
};

}  // namespace

void route_forward(Cpu, const RoutingForm& form, const RoutingTensors& r) {
  const int64_t tokens = r.scores.size(0), experts = r.scores.size(1), k = form.experts_per_token;
  dispatch_floating("route", r.scores.dtype(), [&]<class T>(T) {
    const T* const bias = data_or_null<T>(r.bias);
    const T* const scores = r.scores.data<T>();
    int32_t* const chosen = r.chosen.data<int32_t>();
    T* const weights = r.weights.data<T>();
    parallel_for(tokens, row_grain(experts * k, kRoutingElements), [&](int64_t begin, int64_t end) {
      Choice<T> choose(form, bias, experts);
      for (int64_t t = begin; t < end; ++t) choose(scores + t * experts, chosen + t * k, weights + t * k);
    });
  });
}

void route_backward(Cpu, const RoutingForm& form, const RoutingTensors& r, const Tensor& d_weights,
                    const Tensor& d_scores) {
  const int64_t tokens = r.scores.size(0), experts = r.scores.size(1), k = form.experts_per_token;
  dispatch_floating("route", r.scores.dtype(), [&]<class T>(T) {
    const T *const scores = r.scores.data<T>(), *const dw = d_weights.data<T>();
    const int32_t* const chosen = r.chosen.data<int32_t>();
    T* const ds = d_scores.data<T>();
    const T scale = static_cast<T>(form.scale);
    parallel_for(tokens, row_grain(experts, kRoutingElements), [&](int64_t begin, int64_t end) {
      std::fill(ds + begin * experts, ds + end * experts, T{0});
      for (int64_t t = begin; t < end; ++t) {
        T sum = static_cast<T>(kRoutingEpsilon), products = 0;
        for (int64_t i = t * k; i < (t + 1) * k; ++i) {
          sum += scores[t * experts + chosen[i]];
          products += dw[i] * scores[t * experts + chosen[i]];
        }
        for (int64_t i = t * k; i < (t + 1) * k; ++i)
          ds[t * experts + chosen[i]] = scale * (form.normalised ? (dw[i] - products / sum) / sum : dw[i]);
      }
    });
  });
}

}  // namespace attune
