#pragma once
// Attention on packed sequences.

#include <cstdint>
#include <span>
#include <vector>

#include "attune/kernels/attention/attention_pattern.h"
#include "attune/kernels/attention/head_columns.h"
#include "attune/kernels/dropout_mask.h"
#include "attune/tensor/tensor.h"

namespace attune {

/// The inputs of forward and backward. All tensors but the mask are float32, or all are float64. On a GPU q, k, v,
/// `out` and their gradients may be bfloat16; the others are then float32.
struct AttentionInputs {
  HeadColumns q;                           // [total_q, heads, d_k]
  HeadColumns k;                           // [total_kv, kv_heads, d_k]; kv_heads divides heads
  HeadColumns v;                           // [total_kv, kv_heads, d_v]
  std::span<const int32_t> query_offsets;  // sequences + 1: sequence s has rows offsets[s] ... offsets[s + 1] - 1
  std::span<const int32_t> key_offsets;    // sequences + 1
  bool causal = false;                     // query i sees keys j <= i + (keys - queries) of its sequence
  Tensor mask = {};                        // uint8 [sequences or 1, queries, keys], 0 = not seen; or undefined
  AttentionPattern pattern = {};
  std::vector<double> slopes = {};  // of ALiBi, one for each head; empty: no ALiBi
  Tensor relative_keys = {};        // [2 clip + 1, d_k], or undefined
  Tensor relative_values = {};      // [2 clip + 1, d_v], or undefined
  int64_t clip = 0;
  Tensor distance_bias = {};  // [2 reach + 1, heads], or undefined
  DropoutMask dropout = {};
  double scale = 1;
  double soft_cap = 0;             // 0: none
  bool bfloat16_products = false;  // a kernel may round what it multiplies to bfloat16

  int64_t sequences() const { return static_cast<int64_t>(query_offsets.size()) - 1; }
};

/// Formulas and masks are those of AttentionOptions (ops/attention/attention.h).
///   out [total_q, heads, d_v]
///   log_sum_exp [total_q, heads]: log(sum over the keys of exp(score)); backward computes the weights again from it.
///   +infinity where a query sees no key, so that its weights become 0.
void attention_forward(Cpu, const AttentionInputs& in, const Tensor& out, const Tensor& log_sum_exp);
void attention_forward(Plain, const AttentionInputs& in, const Tensor& out, const Tensor& log_sum_exp);
void attention_forward(Cuda, const AttentionInputs& in, const Tensor& out, const Tensor& log_sum_exp);

/// Gradients are written, not added to.
struct AttentionGradients {
  HeadColumns dq, dk, dv;                     // rows as long as those of q, k and v
  Tensor d_relative_keys, d_relative_values;  // shaped like the tables; undefined where there is no such table
  Tensor d_distance_bias;                     // the same
};
///   out and d_out [total_q, heads, d_v], out and log_sum_exp as attention_forward() wrote them
void attention_backward(Cpu, const AttentionInputs& in, const Tensor& out, const Tensor& log_sum_exp,
                        const Tensor& d_out, const AttentionGradients& gradients);
void attention_backward(Plain, const AttentionInputs& in, const Tensor& out, const Tensor& log_sum_exp,
                        const Tensor& d_out, const AttentionGradients& gradients);
void attention_backward(Cuda, const AttentionInputs& in, const Tensor& out, const Tensor& log_sum_exp,
                        const Tensor& d_out, const AttentionGradients& gradients);

/// Writes the attention weights, without dropout, where a query sees a key; other elements of `weights` do not change.
///   weights [sequences, heads, most queries, most keys]
void attention_weights(Cpu, const AttentionInputs& in, const Tensor& log_sum_exp, const Tensor& weights);
void attention_weights(Plain, const AttentionInputs& in, const Tensor& log_sum_exp, const Tensor& weights);
void attention_weights(Cuda, const AttentionInputs& in, const Tensor& log_sum_exp, const Tensor& weights);

}  // namespace attune
