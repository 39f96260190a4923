#pragma once

#include <memory>

#include "attune/nn/attention/attention.h"
#include "attune/nn/checkpointed_layer.h"
#include "attune/nn/feed_forward.h"
#include "attune/nn/layer_options.h"
#include "attune/nn/residual_connection.h"

namespace [[gnu::visibility("default")]] attune {

/// Self-attention and feed-forward, each within a residual connection. Vaswani et al. 2017, figure 1, left.
class EncoderLayer final : public CheckpointedLayer {
 public:
  EncoderLayer(std::unique_ptr<Attention> self_attention, std::unique_ptr<FeedForwardNetwork> feed_forward,
               const ResidualConnectionConfig& residual, const LayerOptions& options = {});
  /// x [tokens, d_model] -> same
  Tensor operator()(const Tensor& x, const AttentionMask& mask) const;
  /// The same, plus the attention weights if mask.with_weights. Keeps all activations for the gradient.
  AttentionOutput forward(const Tensor& x, const AttentionMask& mask) const;
  const Attention& self_attention() const { return *self_attention_; }
  void visit(Visitor& v) override;

 private:
  std::unique_ptr<Attention> self_attention_;
  std::unique_ptr<FeedForwardNetwork> feed_forward_;
  ResidualConnection residual_1_, residual_2_;
  bool parallel_;
};

}  // namespace attune
