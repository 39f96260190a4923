#pragma once

#include <cstdint>
#include <vector>

#include "attune/kernels/attention/attention_pattern.h"
#include "attune/kernels/attention/head_columns.h"
#include "attune/ops/dropout.h"
#include "attune/ops/sequences.h"
#include "attune/tensor/tensor.h"

namespace [[gnu::visibility("default")]] attune {

struct AttentionOptions {
  Sequences query_sequences = {};  // which rows of q belong to each sequence of the batch
  Sequences key_sequences = {};    // which rows of k and v do; the same number of sequences
  /// Query i sees keys j <= i + (keys - queries) of its sequence: the last query sees every key.
  bool causal = false;
  /// uint8 [sequences or 1, most queries, most keys], 1 = may be attended to; undefined: every key may.
  Tensor mask = {};
  /// For self-attention. The position of query i is i + (keys - queries) of its sequence, which may not be negative.
  /// Pairs that the pattern does not allow cost nothing.
  AttentionPattern pattern = {};
  /// Adds -slope_h |i - j| to the scaled score, with the slopes of alibi_slopes(heads). Press et al. 2022.
  bool alibi = false;
  /// Shaw et al. 2018, equations 3 to 5: a [2 clip + 1, d_k] and b [2 clip + 1, d_v], shared by the heads; the row of
  /// query i and key j is clamp(j - i, -clip, clip) + clip. The score is q_i (k_j + a_ij) * scale, the output
  /// sum_j weight_ij (v_j + b_ij), with dropout on the weights. An undefined table adds no term; either may be defined.
  Tensor relative_keys = {};
  Tensor relative_values = {};
  /// Raffel et al. 2020, section 2.1: [2 reach + 1, heads], added to the scaled score; the row of query i and key j is
  /// clamp(j - i, -reach, reach) + reach. Undefined: nothing is added.
  Tensor distance_bias = {};
  /// On the weights, after the softmax. The row of the mask is query row * heads + head; the column is the key's index
  /// in its sequence, or with a pattern a number that depends on query and key alone.
  DropoutMask dropout = {};
  double scale = 0;  // 0: 1 / sqrt(d_k)
  /// c > 0: the scaled score s is replaced by c tanh(s / c), before the mask; not together with alibi or distance_bias.
  /// Gemma Team 2024, "Gemma 2", section 2.
  double soft_cap = 0;
};

struct AttentionResult {
  Tensor heads;    // what attention() returns
  Tensor weights;  // of the heads, on request; else undefined
};

/// softmax(q k^T * scale + mask) v, per sequence and head.
///   q [total_q, heads, d_k]   k [total_kv, kv_heads, d_k]   v [total_kv, kv_heads, d_v]
///   returns [total_q, heads, d_v], of the type of q, k and v
/// All are float32, or all are float64; or q, k and v are bfloat16, where attention_reads_bfloat16(), and the tables
/// float32. Query head h reads key head h / (heads / kv_heads). A query that may attend to no key gives zeros. The
/// matrix of scores is never stored: memory is linear in the sequence length, forward and backward. Differentiable in
/// q, k, v, relative_keys, relative_values and distance_bias. Throws ShapeError, and ConfigError for a pattern or a
/// dropout probability that is not valid. Source: Vaswani et al. 2017, section 3.2.1; Dao et al. 2022 for the tiling.
Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options);

/// Whether q, k and v may be bfloat16 on this device: on a GPU.
bool attention_reads_bfloat16(const Device& device);

/// All heads of x [rows, heads, d] as HeadColumns. Throws ShapeError.
HeadColumns head_columns(const Tensor& x);

/// The same for heads within longer rows, which are read in place. Inputs in one tensor share one gradient tensor.
Tensor attention(const HeadColumns& q, const HeadColumns& k, const HeadColumns& v, const AttentionOptions& options);
/// The same. If `with_weights`, also returns the weights, for pictures and tests: without dropout, [sequences, heads,
/// most queries, most keys], zero beyond the queries and keys of a sequence.
AttentionResult attention(const HeadColumns& q, const HeadColumns& k, const HeadColumns& v,
                          const AttentionOptions& options, bool with_weights);

/// The slope of each head: 2^(-8 / heads), 2^(-16 / heads), ... if heads is a power of two. Otherwise the slopes of the
/// next lower power of two, then every second slope of the next higher one. Throws ConfigError.
/// Source: Press et al. 2022, section 3, and their reference recipe.
std::vector<double> alibi_slopes(int64_t heads);

}  // namespace attune
