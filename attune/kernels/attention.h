#pragma once
// The attention kernels of the devices, on packed sequences.

#include <cstdint>
#include <vector>

#include "attune/kernels/attention_pattern.h"
#include "attune/kernels/dropout_mask.h"
#include "attune/tensor/device.h"

namespace attune {

/// What forward and backward share. Row r, head h of q begins at q + r * q_row + h * d_k, and so on: rows may lie
/// within longer ones.
template <class T>
struct AttentionInputs {
  const T* q;
  const T* k;
  const T* v;
  int64_t q_row, k_row, v_row;
  int64_t heads, kv_heads, d_k, d_v;
  const int32_t* query_offsets;  // sequences + 1
  const int32_t* key_offsets;
  int64_t sequences;
  bool causal;
  const uint8_t* mask;  // null, or [sequences or 1][mask_queries][mask_keys]
  int64_t mask_sequences, mask_queries, mask_keys;
  AttentionPattern pattern;
  std::vector<double> slopes;  // ALiBi's, one for each head; empty: none
  const T* relative_keys;      // null, or [2 clip + 1, d_k]
  const T* relative_values;    // null, or [2 clip + 1, d_v]
  int64_t clip;
  DropoutMask dropout;
  double scale;

  /// Whether scores are q k^T * scale alone, and every key in sight is seen.
  bool plain() const {
    return std::holds_alternative<FullAttention>(pattern) && slopes.empty() && !relative_keys && !relative_values;
  }
};

/// out [total_q, heads, d_v]; log_sum_exp [total_q, heads] is what backward needs to form the weights again.
template <class T>
struct AttentionForward {
  AttentionInputs<T> in;
  T* out;
  T* log_sum_exp;
};

/// The gradients are written, not added to; those of the tables where there is such a table. The rows of dq, dk and dv
/// are as long as those of q, k and v.
template <class T>
struct AttentionBackward {
  AttentionInputs<T> in;
  const T* out;
  const T* log_sum_exp;
  const T* d_out;
  T* dq;
  T* dk;
  T* dv;
  T* d_relative_keys;
  T* d_relative_values;
};

void attention_forward(Cpu, const AttentionForward<float>& arguments);
void attention_forward(Cpu, const AttentionForward<double>& arguments);
void attention_backward(Cpu, const AttentionBackward<float>& arguments);
void attention_backward(Cpu, const AttentionBackward<double>& arguments);

/// weights [sequences, heads, most_queries, most_keys], without dropout.
template <class T>
void attention_weights(Cpu, const AttentionInputs<T>& in, const T* log_sum_exp, T* weights, int64_t most_queries,
                       int64_t most_keys);

}  // namespace attune
