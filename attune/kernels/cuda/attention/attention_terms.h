#pragma once
// How a score follows from a product of query and key: what attention and cached attention have in common.

#include <cmath>
#include <vector>

#include "attune/kernels/cuda/runtime/platform.h"
#include "attune/kernels/for_dtype.h"
#include "attune/tensor/tensor.h"

namespace attune::cuda {

/// The fields of these names in AttentionInputs and CachedAttention.
template <class T>
struct AttentionTerms {
  int heads;                 // of queries
  const T* slopes;           // or null
  const T* relative_keys;    // or null
  const T* relative_values;  // or null
  int clip;
  const T* distance_bias;  // or null
  int reach;
  T scale, soft_cap;

  /// Which row of a table of 2 * limit + 1 rows belongs to a distance.
  ATTUNE_DEVICE static int table_row(int distance, int limit) {
    return (distance < -limit ? -limit : distance > limit ? limit : distance) + limit;
  }

  struct Score {
    T value, derivative;  // of the value by product * scale
  };
  /// From q . k and the distance of the key from the query.
  ATTUNE_DEVICE Score score(T product, int head, int distance) const {
    Score s{product * scale, 1};
    if (soft_cap > 0) {
      const T t = std::tanh(s.value / soft_cap);
      s = {soft_cap * t, 1 - t * t};
    }
    if (distance_bias != nullptr) s.value += distance_bias[int64_t{table_row(distance, reach)} * heads + head];
    if (slopes != nullptr) s.value -= slopes[head] * static_cast<T>(distance < 0 ? -distance : distance);
    return s;
  }
};

/// The slopes in the memory of the device; undefined if there are none.
template <class T>
Tensor slopes_on(Cuda device, const std::vector<double>& slopes) {
  const std::vector<T> values(slopes.begin(), slopes.end());
  return values.empty() ? Tensor{} : Tensor::from({static_cast<int64_t>(values.size())}, values, Device(device));
}

/// `slopes` as slopes_on() returned them.
template <class T, class Inputs>
AttentionTerms<T> terms_of(const Inputs& in, int64_t heads, const Tensor& slopes) {
  return {.heads = static_cast<int>(heads),
          .slopes = data_or_null<T>(slopes),
          .relative_keys = data_or_null<T>(in.relative_keys),
          .relative_values = data_or_null<T>(in.relative_values),
          .clip = static_cast<int>(in.clip),
          .distance_bias = data_or_null<T>(in.distance_bias),
          .reach = static_cast<int>(in.distance_bias.defined() ? in.distance_bias.size(0) / 2 : 0),
          .scale = static_cast<T>(in.scale),
          .soft_cap = static_cast<T>(in.soft_cap)};
}

}  // namespace attune::cuda
