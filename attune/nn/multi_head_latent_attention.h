#pragma once

#include "attune/nn/attention.h"
#include "attune/nn/dropout.h"
#include "attune/nn/linear.h"

namespace attune {

struct MultiHeadLatentAttentionConfig {
  int64_t d_model = 512;
  int64_t heads = 8;         // divides d_model
  int64_t latent_dim = 128;  // d_c of the paper; d_model / 4 by default
  double dropout = 0;        // on the attention weights
};

/// Multi-head attention whose keys and values come from one latent of a token:
///   c = x W_kv_compress,  k = c W_k_decompress,  v = c W_v_decompress
/// Training expands k and v. Decoding keeps c alone and absorbs the decompressions:
///   q k^T = (q W_k_decompress^T) c^T   and   (weights v) = (weights c) W_v_decompress
/// Source: DeepSeek-AI 2024, "DeepSeek-V2", section 2.1.2, equations 9 to 13.
class MultiHeadLatentAttention final : public Attention {
 public:
  explicit MultiHeadLatentAttention(const MultiHeadLatentAttentionConfig& config);
  Tensor operator()(const Tensor& query, const Tensor& memory, const AttentionMask& mask) const override;
  AttentionCache make_cache() const override;
  int64_t append(const Tensor& memory, AttentionCache& cache) const override;
  Tensor attend(const Tensor& query, const AttentionCache& cache, const SlotTable& table) const override;
  int64_t cache_width() const override { return config_.latent_dim; }
  void visit(Visitor& v) override;

 private:
  Tensor split_heads(const Tensor& x) const { return x.reshape({-1, config_.heads, config_.d_model / config_.heads}); }

  MultiHeadLatentAttentionConfig config_;
  Linear w_q_, w_kv_compress_, w_k_decompress_, w_v_decompress_, w_o_;
  Dropout dropout_;
};

}  // namespace attune
