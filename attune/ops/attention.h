#pragma once

#include "attune/ops/dropout.h"
#include "attune/ops/sequences.h"
#include "attune/tensor/tensor.h"

namespace attune {

struct AttentionOptions {
  Sequences query_sequences = {};  // rows of q, one piece for each sequence of the batch
  Sequences key_sequences = {};    // rows of k and v; as many sequences
  /// Query i sees keys j <= i + (keys - queries) of its sequence: the last query sees everything.
  bool causal = false;
  /// uint8 [sequences or 1, most queries, most keys], 1 = may be attended to; undefined: everything.
  Tensor mask = {};
  /// On the weights, after the softmax. Row of the mask: query row * heads + head; column: key within its sequence.
  DropoutMask dropout = {};
  double scale = 0;  // 0: 1 / sqrt(d_k)
  /// On request, for pictures and tests: the weights without dropout, [sequences, heads, most queries, most keys],
  /// zero where there is no such query or key.
  Tensor* weights = nullptr;
};

/// softmax(q k^T * scale + mask) v, per sequence and head.
///   q [total_q, heads, d_k]   k [total_kv, kv_heads, d_k]   v [total_kv, kv_heads, d_v]
///   returns [total_q, heads, d_v]
/// Query head h reads key head h / (heads / kv_heads). A query that may attend to nothing gives zeros. The matrix of
/// scores is never stored: memory is linear in the sequence length, forward and backward.
/// Differentiable in q, k and v. Throws ShapeError.
/// Source: Vaswani et al. 2017, section 3.2.1; Dao et al. 2022 for the tiling.
Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options);

}  // namespace attune
