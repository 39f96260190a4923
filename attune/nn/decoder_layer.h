#pragma once

#include <memory>

#include "attune/nn/attention.h"
#include "attune/nn/feed_forward.h"
#include "attune/nn/kv_cache.h"
#include "attune/nn/residual_connection.h"

namespace attune {

/// Masked self-attention, cross-attention to the encoder's output and feed-forward, each within a residual connection.
/// Vaswani et al. 2017, figure 1, right.
class DecoderLayer final : public Module {
 public:
  DecoderLayer(std::unique_ptr<Attention> self_attention, std::unique_ptr<Attention> cross_attention,
               const FeedForwardConfig& feed_forward, const ResidualConnectionConfig& residual);
  /// x [target tokens, d_model], memory [source tokens, d_model] -> [target tokens, d_model]
  Tensor operator()(const Tensor& x, const Tensor& memory, const AttentionMask& self_mask,
                    const AttentionMask& cross_mask) const;

  KvCache::Layer make_cache(const Tensor& memory) const;
  /// One token for each row. The cache's self table already has the slots of these tokens, the next ones of this layer.
  Tensor step(const Tensor& x, KvCache::Layer& layer, const KvCache& cache) const;

  const Attention& self_attention() const { return *self_attention_; }
  const Attention& cross_attention() const { return *cross_attention_; }
  void visit(Visitor& v) override;

 private:
  std::unique_ptr<Attention> self_attention_, cross_attention_;
  FeedForward feed_forward_;
  ResidualConnection residual_1_, residual_2_, residual_3_;
};

}  // namespace attune
