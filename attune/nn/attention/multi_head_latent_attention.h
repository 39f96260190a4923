#pragma once

#include <memory>

#include "attune/nn/attention/attention.h"
#include "attune/nn/dropout.h"
#include "attune/nn/layer_norm.h"
#include "attune/nn/linear.h"

namespace [[gnu::visibility("default")]] attune {

struct MultiHeadLatentAttentionConfig {
  int64_t d_model = 512;
  int64_t heads = 8;                  // divides d_model, or head_dim and value_dim are given
  int64_t head_dim = 0;               // d_h of queries and keys, without the rotary part; 0: d_model / heads
  int64_t value_dim = 0;              // d_h of values; 0: head_dim
  int64_t latent_dim = 128;           // d_c of the paper; d_model / 4 by default
  int64_t query_latent_dim = 0;       // d_c'; 0: queries are not compressed
  bool latent_norm = false;           // an RMSNorm on each latent
  bool bias = false;                  // of the compressions, the rotary key and the output
  int64_t rotary_dim = 0;             // d_h^R: numbers of the decoupled rotary part; 0: none
  double scale = 0;                   // of the scores; 0: 1 / sqrt(head_dim + rotary_dim)
  double dropout = 0;                 // on the attention weights
  AttentionPositions positions = {};  // has `rotary` exactly if rotary_dim is above 0; no relative_clip
};

/// Multi-head attention that computes the keys and values of a token from one latent vector c:
///   c = x W_kv_compress,  k = c W_k_decompress,  v = c W_v_decompress
/// Training computes k and v. Decoding caches only c and absorbs the decompressions into query and output:
///   q k^T = (q W_k_decompress^T) c^T   and   (weights v) = (weights c) W_v_decompress
/// A rotation of k would prevent this. Rotary positions therefore have dimensions of their own, with one key for all
/// heads: q = [q; rotary(q_in W_q_rotary)], k = [k; rotary(x W_k_rotary)]. YaRN's temperature applies only to these.
/// A part of a prompt over its cache (more than kQueriesByRow new tokens of a sequence) and hypotheses over a source
/// are computed in the cheaper form, see absorbs() in latent_cost.h; fewer new tokens absorb, as a single one does.
/// Source: DeepSeek-AI 2024, "DeepSeek-V2", section 2.1.2, equations 9 to 13, and 2.1.3, equations 14 to 19.
class MultiHeadLatentAttention final : public Attention {
 public:
  /// Throws ConfigError naming the field.
  explicit MultiHeadLatentAttention(const MultiHeadLatentAttentionConfig& config);
  AttentionOutput forward(const Tensor& query, const Tensor& memory, const AttentionMask& mask) const override;
  AttentionCache make_cache() const override;
  void append(const Tensor& memory, const Indices& positions, std::span<const int32_t> slots,
              AttentionCache& cache) const override;
  Tensor prompt(const Tensor& x, const AttentionMask& mask, std::span<const int32_t> slots,
                AttentionCache& cache) const override;
  AttentionOutput attend(const Tensor& query, const CachedQueries& queries, const AttentionCache& cache) const override;
  int64_t cache_width() const override { return config_.latent_dim + config_.rotary_dim; }
  void visit(Visitor& v) override;

 private:
  /// `decompress` are the two decompressions, adjacent in memory.
  MultiHeadLatentAttention(const MultiHeadLatentAttentionConfig& config, const std::vector<Projection>& decompress);
  Tensor split_heads(const Tensor& x) const { return x.reshape({-1, config_.heads, d_head_}); }
  /// The input of w_q: x, or the query latent of x.
  Tensor query_input(const Tensor& x) const;
  /// What keys and values are computed from, and what the cache keeps: the latent and the rotary key.
  struct Memory {
    Tensor latent;      // [n, latent_dim]
    Tensor rotary_key;  // [n, 1, rotary_dim], or undefined
  };
  Memory memory_of(const Tensor& x, const Indices& positions) const;
  void append(const Memory& memory, std::span<const int32_t> slots, AttentionCache& cache) const;
  AttentionOutput attend(const Tensor& query, const Indices& positions, const Memory& memory,
                         const AttentionMask& mask) const;
  AttentionOutput attend(const HeadColumns& q, const HeadColumns& k, const HeadColumns& v,
                         const AttentionMask& mask) const;
  /// Whether queries [begin, end), a group, read keys and values that are computed again from the cached latents.
  bool expands(const CachedQueries& queries, int64_t begin, int64_t end) const;
  AttentionOutput attend_absorbed(const Tensor& query, const CachedQueries& queries, const AttentionCache& cache) const;
  Tensor attend_expanded(const Tensor& query, const CachedQueries& queries, const AttentionCache& cache) const;
  Tensor rotary_query(const Tensor& query_input, const Indices& positions) const;  // [n, heads, rotary_dim]
  /// The positions of the rows if they are rotary, else none.
  Indices positions_for(const Sequences& sequences) const;
  double scale() const;

  MultiHeadLatentAttentionConfig config_;
  int64_t d_head_, d_value_;
  std::unique_ptr<Linear> w_q_compress_;                 // with query_latent_dim
  std::unique_ptr<LayerNorm> query_norm_, latent_norm_;  // with latent_norm
  Linear w_q_, w_kv_compress_, w_k_decompress_, w_v_decompress_, w_o_;
  std::unique_ptr<Linear> w_q_rotary_, w_k_rotary_;  // with rotary_dim
  Dropout dropout_;
};

}  // namespace attune
