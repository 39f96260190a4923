#pragma once

#include "attune/nn/attention.h"
#include "attune/nn/dropout.h"
#include "attune/nn/linear.h"

namespace attune {

struct MultiHeadAttentionConfig {
  int64_t d_model = 512;
  int64_t heads = 8;  // divides d_model
  bool bias = true;
  double dropout = 0;  // on the attention weights
};

/// MultiHead(Q, K, V) = Concat(head_1 ... head_h) W_o, head_i = Attention(Q W_q_i, K W_k_i, V W_v_i)
/// Source: Vaswani et al. 2017, section 3.2.2.
class MultiHeadAttention final : public Attention {
 public:
  explicit MultiHeadAttention(const MultiHeadAttentionConfig& config);
  Tensor operator()(const Tensor& query, const Tensor& memory, const AttentionMask& mask) const override;
  AttentionCache make_cache() const override;
  int64_t append(const Tensor& memory, AttentionCache& cache) const override;
  Tensor attend(const Tensor& query, const AttentionCache& cache, const SlotTable& table) const override;
  int64_t cache_width() const override { return 2 * config_.d_model; }
  void visit(Visitor& v) override;

 private:
  Tensor split_heads(const Tensor& x) const { return x.reshape({-1, config_.heads, config_.d_model / config_.heads}); }

  MultiHeadAttentionConfig config_;
  Linear w_q_, w_k_, w_v_, w_o_;
  Dropout dropout_;
};

}  // namespace attune
