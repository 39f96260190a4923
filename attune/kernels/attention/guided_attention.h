#pragma once
// The loss that teaches a head of attention to look where a word alignment says.

#include <cstdint>
#include <span>

#include "attune/kernels/attention/head_columns.h"
#include "attune/tensor/tensor.h"

namespace attune {

/// All tensors are float32, or all are float64.
struct GuidedAttentionInputs {
  HeadColumns q;                           // [total_q, heads, d_k]
  HeadColumns k;                           // [total_kv, kv_heads, d_k]; kv_heads divides heads
  std::span<const int32_t> query_offsets;  // sequences + 1: sequence s has rows offsets[s] ... offsets[s + 1] - 1
  std::span<const int32_t> key_offsets;    // sequences + 1
  std::span<const int32_t> link_offsets;   // [total_q + 1]: row r has links link_offsets[r] ... link_offsets[r + 1] - 1
  std::span<const int32_t> link_keys;      // the key of each link, counted within its sequence; those of a row differ
  int64_t head = 0;                        // of q
  double scale = 1;                        // of the scores
  double soft_cap = 0;                     // 0: none

  int64_t sequences() const { return static_cast<int64_t>(query_offsets.size()) - 1; }
};

/// The formula is that of guided_attention_loss() (ops/attention/guided_attention.h).
/// sum = the sum over all rows, without a factor; the same for any number of threads.
///   log_sum_exp [total_q], float64: log(sum over the keys of exp(score)); 0 in rows without links   sum [1], float64
void guided_attention_forward(Cpu, const GuidedAttentionInputs& in, const Tensor& log_sum_exp, const Tensor& sum);
void guided_attention_forward(Plain, const GuidedAttentionInputs& in, const Tensor& log_sum_exp, const Tensor& sum);
void guided_attention_forward(Cuda, const GuidedAttentionInputs& in, const Tensor& log_sum_exp, const Tensor& sum);

/// Adds factor * gradient to the columns of the head in dq and of its key head in dk; other columns do not change.
///   dq, dk: as q and k   log_sum_exp as guided_attention_forward() wrote it
void guided_attention_backward(Cpu, const GuidedAttentionInputs& in, const Tensor& log_sum_exp, double factor,
                               const HeadColumns& dq, const HeadColumns& dk);
void guided_attention_backward(Plain, const GuidedAttentionInputs& in, const Tensor& log_sum_exp, double factor,
                               const HeadColumns& dq, const HeadColumns& dk);
void guided_attention_backward(Cuda, const GuidedAttentionInputs& in, const Tensor& log_sum_exp, double factor,
                               const HeadColumns& dq, const HeadColumns& dk);

}  // namespace attune
