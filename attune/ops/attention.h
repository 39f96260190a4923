#pragma once

#include <cstdint>
#include <vector>

#include "attune/kernels/attention_pattern.h"
#include "attune/kernels/head_columns.h"
#include "attune/ops/dropout.h"
#include "attune/ops/sequences.h"
#include "attune/tensor/tensor.h"

namespace [[gnu::visibility("default")]] attune {

struct AttentionOptions {
  Sequences query_sequences = {};  // rows of q, one piece for each sequence of the batch
  Sequences key_sequences = {};    // rows of k and v; as many sequences
  /// Query i sees keys j <= i + (keys - queries) of its sequence: the last query sees everything.
  bool causal = false;
  /// uint8 [sequences or 1, most queries, most keys], 1 = may be attended to; undefined: everything.
  Tensor mask = {};
  /// Self-attention: the position of query i is i + (keys - queries) of its sequence, which may not be negative. What
  /// the pattern leaves out costs nothing.
  AttentionPattern pattern = {};
  /// Adds -slope_h |i - j| to the scaled score, with the slopes of alibi_slopes(heads). Press et al. 2022.
  bool alibi = false;
  /// Shaw et al. 2018, equations 3 to 5: a [2 clip + 1, d_k] and b [2 clip + 1, d_v], shared by the heads; the row of
  /// query i and key j is clamp(j - i, -clip, clip) + clip. The score is q_i (k_j + a_ij) * scale, the output
  /// sum_j weight_ij (v_j + b_ij), with dropout on the weights. Undefined: no such term; each may be given alone.
  Tensor relative_keys = {};
  Tensor relative_values = {};
  /// On the weights, after the softmax. Row of the mask: query row * heads + head; column: key within its sequence, or
  /// what dropout_column (attention_plan.h) says for a pattern.
  DropoutMask dropout = {};
  double scale = 0;  // 0: 1 / sqrt(d_k)
};

struct AttentionResult {
  Tensor heads;
  Tensor weights;
};

/// softmax(q k^T * scale + mask) v, per sequence and head.
///   q [total_q, heads, d_k]   k [total_kv, kv_heads, d_k]   v [total_kv, kv_heads, d_v]
///   returns [total_q, heads, d_v]
/// Query head h reads key head h / (heads / kv_heads). A query that may attend to nothing gives zeros. The matrix of
/// scores is never stored: memory is linear in the sequence length, forward and backward.
/// Differentiable in q, k, v, relative_keys and relative_values. Throws ShapeError, and ConfigError for a pattern or a
/// probability of dropout that cannot be.
/// Source: Vaswani et al. 2017, section 3.2.1; Dao et al. 2022 for the tiling.
Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options);

/// All of x [rows, heads, d]. Throws ShapeError.
HeadColumns head_columns(const Tensor& x);

/// The same of heads that lie within longer rows, read in place. Those that share a tensor share its gradient.
Tensor attention(const HeadColumns& q, const HeadColumns& k, const HeadColumns& v, const AttentionOptions& options);
/// The same with the weights where `with_weights`, for pictures and tests: without dropout, [sequences, heads, most
/// queries, most keys], zero where there is no such query or key; else undefined.
AttentionResult attention(const HeadColumns& q, const HeadColumns& k, const HeadColumns& v,
                          const AttentionOptions& options, bool with_weights);

/// The slope of each head: the geometric sequence 2^(-8 / heads), 2^(-16 / heads), ... for a power of two; for other
/// numbers that of the power below, then every other one of the power above. Throws ConfigError.
/// Source: Press et al. 2022, section 3, and their reference recipe.
std::vector<double> alibi_slopes(int64_t heads);

}  // namespace attune
