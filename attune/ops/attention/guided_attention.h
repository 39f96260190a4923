#pragma once

#include <cstdint>
#include <vector>

#include "attune/kernels/attention/head_columns.h"
#include "attune/ops/sequences.h"
#include "attune/tensor/tensor.h"

namespace [[gnu::visibility("default")]] attune {

/// Which keys the queries of a packed batch are aligned with.
struct AlignmentLinks {
  std::vector<int32_t> offsets = {0};  // [total_q + 1]: query row r has the links offsets[r] ... offsets[r + 1] - 1
  std::vector<int32_t> keys = {};      // of each link the key, counted within its sequence; no key twice in a row
};

struct GuidedAttentionOptions {
  Sequences query_sequences = {};  // which rows of q belong to each sequence of the batch
  Sequences key_sequences = {};    // which rows of k do; the same number of sequences
  AlignmentLinks links = {};
  int64_t head = 0;       // of q, from 0
  double scale = 0;       // of the scores; 0: 1 / sqrt(d_k)
  double soft_cap = 0;    // of the scores, see AttentionOptions; 0: none
  double loss_scale = 1;  // factor of the summed loss
};

/// How far a head of attention is from a given alignment:
///   loss_scale * sum over queries t and keys j of -a_tj log softmax(q_t k^T * scale)_j
/// where a_tj is 1 / n for each of the n keys that query t is aligned with and 0 for the others. A query without links
/// adds nothing. For any other query t the gradient of the score for key j is loss_scale * (softmax_j - a_tj). Dropout
/// of the weights plays no part.
///   q [total_q, heads, d_k]   k [total_kv, kv_heads, d_k]; query head h reads key head h / (heads / kv_heads)
///   returns a scalar like q
/// Differentiable in q and k as cross_entropy() is in logits. Throws ShapeError, and DataError for links to keys that a
/// sequence does not have. Source: Chen et al. 2016, "Guided Alignment Training for Topic-Aware Neural Machine
/// Translation", section 3.
Tensor guided_attention_loss(const HeadColumns& q, const HeadColumns& k, const GuidedAttentionOptions& options);

}  // namespace attune
