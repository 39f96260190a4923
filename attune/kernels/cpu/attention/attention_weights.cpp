// The weights of attention on request, for pictures and tests: plain loops.

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "attune/kernels/attention/attention_plan.h"
#include "attune/kernels/cpu/attention/attention_pointers.h"

namespace attune {
namespace {

struct ScoredPair {
  int64_t head, query, key;  // query and key: positions in the sequence
};

// The scaled score of one pair, with every term.
template <class T>
T score(const AttentionPointers<T>& in, const AttentionSpan& span, const T* q, const T* k, const ScoredPair& pair) {
  const int64_t distance = pair.key - span.position(pair.query);
  const T* a =
      in.relative_keys ? in.relative_keys + (std::clamp(distance, -in.clip, in.clip) + in.clip) * in.d_k : nullptr;
  T sum = 0;
  for (int64_t c = 0; c < in.d_k; ++c) sum += q[c] * (a ? k[c] + a[c] : k[c]);
  const double slope = in.slopes.empty() ? 0 : in.slopes[static_cast<size_t>(pair.head)];
  const T bias = in.distance_bias ? in.distance_bias[in.bias_index(distance, pair.head)] : T{0};
  T product = sum * static_cast<T>(in.scale);
  if (in.soft_cap > 0) product = static_cast<T>(in.soft_cap * std::tanh(static_cast<double>(product) / in.soft_cap));
  return product - static_cast<T>(slope * static_cast<double>(std::abs(distance))) + bias;
}

template <class T>
void write_weights(const AttentionPointers<T>& in, const T* log_sum_exp, T* weights, int64_t most_queries,
                   int64_t most_keys) {
  const int64_t group = in.heads / in.kv_heads;
  for (int64_t s = 0; s < in.sequences; ++s) {
    const int64_t q_begin = in.query_offsets[s], queries = in.query_offsets[s + 1] - q_begin;
    const int64_t k_begin = in.key_offsets[s], keys = in.key_offsets[s + 1] - k_begin;
    const AttentionSpan span{queries, keys, in.causal};
    for (int64_t h = 0; h < in.heads; ++h) {
      for (int64_t i = 0; i < queries; ++i) {
        const int64_t visible = in.causal ? std::clamp<int64_t>(span.position(i) + 1, 0, keys) : keys;
        const uint8_t* mask =
            in.mask ? in.mask + ((in.mask_sequences == 1 ? 0 : s) * in.mask_queries + i) * in.mask_keys : nullptr;
        const int64_t q_row = (q_begin + i) * in.heads + h;
        const T* q = in.q + (q_begin + i) * in.q_row + h * in.d_k;
        T* out = weights + ((s * in.heads + h) * most_queries + i) * most_keys;
        for (int64_t j = 0; j < visible; ++j) {
          if ((mask && mask[j] == 0) || !allows(in.pattern, span.position(i), j)) continue;
          const T* k = in.k + (k_begin + j) * in.k_row + h / group * in.d_k;
          out[j] = std::exp(score(in, span, q, k, {h, i, j}) - log_sum_exp[q_row]);
        }
      }
    }
  }
}

}  // namespace

void attention_weights(Cpu, const AttentionInputs& in, const Tensor& log_sum_exp, const Tensor& weights) {
  dispatch_floating("attention", weights.dtype(), [&]<class T>(T) {
    write_weights(pointers_of<T>(in), log_sum_exp.data<T>(), weights.data<T>(), weights.size(2), weights.size(3));
  });
}

}  // namespace attune
