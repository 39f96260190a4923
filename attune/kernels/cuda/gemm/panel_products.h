#pragma once
// Products of rows with weights, in an order that depends on the number of inputs alone: a row's result does not depend
// on what else is computed. panel_linear, panel_linear_columns and linear_columns give the same bits.

#include <cmath>

#include "attune/kernels/cuda/gemm/panel_reader.h"
#include "attune/kernels/cuda/runtime/thread.h"

namespace attune::cuda {

/// A sum over the inputs is this many chains, of which chain c has the inputs c, c + kChains, ..., and then the sum of
/// the chains in their order.
constexpr int kChains = 16;

/// x . w, where weight(k) is the weight of input k.
template <class T, class X, class Weight>
ATTUNE_DEVICE T chained_dot(const X* x, int64_t in, const Weight& weight) {
  T sum = 0;
  for (int64_t chain = 0; chain < kChains; ++chain) {
    T part = 0;
    for (int64_t k = chain; k < in; k += kChains)
      part = std::fma(static_cast<T>(x[k]), static_cast<T>(weight(k)), part);
    sum = chain == 0 ? part : sum + part;
  }
  return sum;
}

/// Rows of x in 8 bits, for weights of 8 and 4 bits: x = scales[k / group] numbers[k].
struct QuantisedRows {
  const int8_t* numbers;  // [rows, stride], zeros beyond the inputs
  const float* scales;    // [rows, groups]
  int64_t stride, groups, group;

  ATTUNE_DEVICE int32_t quad(int64_t row, int64_t quad) const {
    return reinterpret_cast<const int32_t*>(numbers + row * stride)[quad];
  }
};

/// The sum of a group of integers, times both scales.
ATTUNE_DEVICE float group_term(const PanelReader& weight, const QuantisedRows& x, int64_t row, int64_t o,
                               int64_t group) {
  const int64_t begin = group * x.group / 4, end = ((group + 1) * x.group + 3) / 4, all = x.stride / 4;
  int32_t sum = 0;
  for (int64_t q = begin; q < (end < all ? end : all); ++q) sum = dot_of_bytes(x.quad(row, q), weight.quad(o, q), sum);
  const float scale = rounded_product(weight.scale(o, group * x.group), x.scales[row * x.groups + group]);
  return rounded_product(static_cast<float>(sum), scale);
}

/// The result of one row for one output, without bias.
template <class X>
ATTUNE_DEVICE float panel_dot(const PanelReader& weight, const X* x, const QuantisedRows& quantised, int64_t row,
                              int64_t o) {
  if (!is_quantised(weight.format))
    return chained_dot<float>(x + row * weight.in, weight.in, [&](int64_t k) { return weight.number(o, k); });
  float result = 0;
  for (int64_t group = 0; group < quantised.groups; ++group) result += group_term(weight, quantised, row, o, group);
  return result;
}

}  // namespace attune::cuda
