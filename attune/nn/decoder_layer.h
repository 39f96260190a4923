#pragma once

#include <memory>

#include "attune/cache/kv_cache.h"
#include "attune/nn/attention/attention.h"
#include "attune/nn/checkpointed_layer.h"
#include "attune/nn/feed_forward.h"
#include "attune/nn/layer_options.h"
#include "attune/nn/residual_connection.h"

namespace [[gnu::visibility("default")]] attune {

/// New tokens in a decoding step: the slots that they are written to, and what each of them sees.
struct CachedStep {
  std::span<const int32_t> slots;
  CachedQueries self;
  CachedQueries cross;
};

struct DecoderLayerOutput {
  Tensor states;                       // [target tokens, d_model]
  Tensor self_weights, cross_weights;  // on request, else undefined; see AttentionOutput
  Tensor guided_loss;                  // of the cross-attention, on request
};

/// Masked self-attention, cross-attention to the encoder's output and feed-forward, each within a residual connection:
/// Vaswani et al. 2017, figure 1, right. A decoder-only model has no cross-attention: Radford et al. 2018.
class DecoderLayer final : public CheckpointedLayer {
 public:
  /// `cross_attention` may be null.
  DecoderLayer(std::unique_ptr<Attention> self_attention, std::unique_ptr<Attention> cross_attention,
               std::unique_ptr<FeedForwardNetwork> feed_forward, const ResidualConnectionConfig& residual,
               const LayerOptions& options = {});
  /// x [target tokens, d_model], memory [source tokens, d_model] -> [target tokens, d_model]. Without cross-attention
  /// memory and cross_mask are ignored.
  Tensor operator()(const Tensor& x, const Tensor& memory, const AttentionMask& self_mask,
                    const AttentionMask& cross_mask) const;
  /// The same, plus the weights of attentions whose masks have with_weights, and the loss of the cross-attention's
  /// guide. Keeps all activations for the gradient.
  DecoderLayerOutput forward(const Tensor& x, const Tensor& memory, const AttentionMask& self_mask,
                             const AttentionMask& cross_mask) const;

  KvCache::Layer make_cache() const;
  /// Writes what the cross-attention needs of `memory` into `slots`. The rows of memory are at `positions`.
  void add_source(const Tensor& memory, const Indices& positions, std::span<const int32_t> slots,
                  KvCache::Layer& layer) const;
  /// Whole prompts x [tokens, d_model] -> same. `mask` is for the self-attention, which writes its cache into `slots`.
  Tensor prompt(const Tensor& x, const AttentionMask& mask, std::span<const int32_t> slots,
                KvCache::Layer& layer) const;
  /// New tokens x [tokens, d_model]; each sees the tokens before it in its sequence.
  /// The output has the weights of the cross-attention if step.cross.with_weights.
  AttentionOutput step(const Tensor& x, const CachedStep& step, KvCache::Layer& layer) const;

  const Attention& self_attention() const { return *self_attention_; }
  const Attention* cross_attention() const { return cross_attention_.get(); }  // or null
  void visit(Visitor& v) override;

 private:
  /// Applies the feed-forward sublayer. `x` is the input of the layer, h the result of its attentions.
  Tensor feed_forward(const Tensor& x, const Tensor& h) const {
    return residual_3_.output(h, (*feed_forward_)(residual_3_.input(parallel_ ? x : h)));
  }

  std::unique_ptr<Attention> self_attention_, cross_attention_;
  std::unique_ptr<FeedForwardNetwork> feed_forward_;
  ResidualConnection residual_1_;
  std::unique_ptr<ResidualConnection> residual_2_;  // of the cross-attention
  ResidualConnection residual_3_;
  bool parallel_;
};

}  // namespace attune
