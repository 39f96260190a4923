#include "attune/kernels/routing.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "attune/kernels/for_dtype.h"

namespace attune {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

// The indices of the `count` largest values, largest first, and of equal ones the first one first.
std::vector<int64_t> largest(const std::vector<double>& values, int64_t count) {
  std::vector<int64_t> order(values.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
  std::ranges::stable_sort(
      order, [&](int64_t a, int64_t b) { return values[static_cast<size_t>(a)] > values[static_cast<size_t>(b)]; });
  order.resize(static_cast<size_t>(count));
  return order;
}

double score_of_group(GroupScore kind, std::vector<double> values) {
  std::ranges::sort(values, std::greater<>());
  return kind == GroupScore::sum_of_two ? values.at(0) + values.at(1) : values.at(0);
}

// Sets the values of experts that are in none of the best groups to minus infinity.
void mask_groups(const RoutingForm& form, std::vector<double>& values) {
  const int64_t size = static_cast<int64_t>(values.size()) / form.groups;
  std::vector<double> of_group;
  for (int64_t g = 0; g < form.groups; ++g)
    of_group.push_back(score_of_group(form.group_score, {values.begin() + g * size, values.begin() + (g + 1) * size}));
  const std::vector<int64_t> best = largest(of_group, form.top_groups);
  for (int64_t g = 0; g < form.groups; ++g)
    if (std::ranges::find(best, g) == best.end()) std::fill_n(values.begin() + g * size, size, kNever);
}

}  // namespace

void route_forward(Plain, const RoutingForm& form, const RoutingTensors& r) {
  const int64_t tokens = r.scores.size(0), experts = r.scores.size(1), k = form.experts_per_token;
  dispatch_floating("route", r.scores.dtype(), [&]<class T>(T) {
    const T* const bias = data_or_null<T>(r.bias);
    for (int64_t t = 0; t < tokens; ++t) {
      const T* const scores = r.scores.data<T>() + t * experts;
      std::vector<double> values;
      for (int64_t e = 0; e < experts; ++e) {
        const T value = bias != nullptr ? scores[e] + bias[e] : scores[e];
        values.push_back(std::isnan(value) ? kNever : value);
      }
      if (form.groups > 1) mask_groups(form, values);
      const std::vector<int64_t> chosen = largest(values, k);
      double sum = kRoutingEpsilon;
      for (const int64_t e : chosen) sum += scores[e];
      for (int64_t j = 0; j < k; ++j) {
        const int64_t e = chosen[static_cast<size_t>(j)];
        r.chosen.data<int32_t>()[t * k + j] = static_cast<int32_t>(e);
        r.weights.data<T>()[t * k + j] = static_cast<T>(scores[e] / (form.normalised ? sum : 1) * form.scale);
      }
    }
  });
}

// w_j = scale s_j / S with S = the sum of the chosen scores: ds_j = scale / S (dw_j - sum of dw_i s_i / S).
void route_backward(Plain, const RoutingForm& form, const RoutingTensors& r, const Tensor& d_weights,
                    const Tensor& d_scores) {
  const int64_t tokens = r.scores.size(0), experts = r.scores.size(1), k = form.experts_per_token;
  dispatch_floating("route", r.scores.dtype(), [&]<class T>(T) {
    for (int64_t i = 0; i < d_scores.numel(); ++i) d_scores.data<T>()[i] = 0;
    for (int64_t t = 0; t < tokens; ++t) {
      const int32_t* const chosen = r.chosen.data<int32_t>() + t * k;
      const T* const scores = r.scores.data<T>() + t * experts;
      const T* const dw = d_weights.data<T>() + t * k;
      double sum = kRoutingEpsilon, products = 0;
      for (int64_t j = 0; j < k; ++j) {
        sum += scores[chosen[j]];
        products += static_cast<double>(dw[j]) * scores[chosen[j]];
      }
      for (int64_t j = 0; j < k; ++j) {
        const double ds = form.normalised ? (dw[j] - products / sum) / sum : dw[j];
        d_scores.data<T>()[t * experts + chosen[j]] = static_cast<T>(form.scale * ds);
      }
    }
  });
}

}  // namespace attune
