#pragma once
// Attention with random weights, and places in its cache, for tests of what is read over a cache.

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "attune/nn/module.h"
#include "attune/ops/sequences.h"
#include "attune/tensor/tensor.h"

namespace attune {

template <class Attention>
struct RandomAttention {
  Attention attention;
  template <class Config>
  explicit RandomAttention(const Config& config) : attention(config) {
    uint64_t stream = 0;
    for (const auto& [name, p] : named_parameters(attention)) initialize_normal(*p, 0.3, 7, stream++);
  }
};

inline Indices positions_between(int64_t begin, int64_t end) {
  std::vector<int32_t> all(static_cast<size_t>(end - begin));
  std::iota(all.begin(), all.end(), static_cast<int32_t>(begin));
  return all;
}

/// Slots n - 1 to 0: an order of their own.
inline std::vector<int32_t> reversed_slots(int64_t n) {
  std::vector<int32_t> slots(static_cast<size_t>(n));
  std::iota(slots.rbegin(), slots.rend(), 0);
  return slots;
}

inline Tensor in_f64(const Tensor& x) {
  return x.to(Cpu{}).to(DType::f64);
}

}  // namespace attune
