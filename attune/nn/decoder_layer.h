#pragma once

#include <memory>

#include "attune/cache/kv_cache.h"
#include "attune/nn/attention.h"
#include "attune/nn/checkpointed_layer.h"
#include "attune/nn/feed_forward.h"
#include "attune/nn/residual_connection.h"

namespace [[gnu::visibility("default")]] attune {

/// New tokens on their way through the layers: where they are kept and what each of them sees.
struct CachedStep {
  std::span<const int32_t> slots;
  CachedQueries self;
  CachedQueries cross;
};

struct DecoderLayerOutput {
  Tensor states;                       // [target tokens, d_model]
  Tensor self_weights, cross_weights;  // on request, else undefined; see AttentionOutput
};

/// Masked self-attention, cross-attention to the encoder's output and feed-forward, each within a residual connection:
/// Vaswani et al. 2017, figure 1, right. In a decoder-only model there is no cross-attention: Radford et al. 2018.
class DecoderLayer final : public CheckpointedLayer {
 public:
  /// `cross_attention` may be null.
  DecoderLayer(std::unique_ptr<Attention> self_attention, std::unique_ptr<Attention> cross_attention,
               const FeedForwardConfig& feed_forward, const ResidualConnectionConfig& residual);
  /// x [target tokens, d_model], memory [source tokens, d_model] -> [target tokens, d_model]. Without cross-attention
  /// neither memory nor cross_mask is looked at.
  Tensor operator()(const Tensor& x, const Tensor& memory, const AttentionMask& self_mask,
                    const AttentionMask& cross_mask) const;
  /// The same with the weights of the attentions whose masks ask for them. Everything is kept for the gradient.
  DecoderLayerOutput forward(const Tensor& x, const Tensor& memory, const AttentionMask& self_mask,
                             const AttentionMask& cross_mask) const;

  KvCache::Layer make_cache() const;
  /// What the cross-attention has to keep of `memory`, whose rows are at `positions`, goes to `slots`.
  void add_source(const Tensor& memory, const Indices& positions, std::span<const int32_t> slots,
                  KvCache::Layer& layer) const;
  /// Whole prompts, whose self-attention is `mask`; what has to be kept of them goes to `slots`.
  Tensor prompt(const Tensor& x, const AttentionMask& mask, std::span<const int32_t> slots,
                KvCache::Layer& layer) const;
  /// New tokens x [tokens, d_model]; with several of one sequence each sees those before it.
  /// With the weights of the cross-attention where step.cross asks for them.
  AttentionOutput step(const Tensor& x, const CachedStep& step, KvCache::Layer& layer) const;

  const Attention& self_attention() const { return *self_attention_; }
  const Attention* cross_attention() const { return cross_attention_.get(); }  // or null
  void visit(Visitor& v) override;

 private:
  std::unique_ptr<Attention> self_attention_, cross_attention_;
  FeedForward feed_forward_;
  ResidualConnection residual_1_;
  std::unique_ptr<ResidualConnection> residual_2_;  // of the cross-attention
  ResidualConnection residual_3_;
};

}  // namespace attune
