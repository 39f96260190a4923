#include "attune/nn/encoder_layer.h"

namespace attune {

EncoderLayer::EncoderLayer(std::unique_ptr<Attention> self_attention, const FeedForwardConfig& feed_forward,
                           const ResidualConnectionConfig& residual)
    : self_attention_(std::move(self_attention)),
      feed_forward_(feed_forward),
      residual_1_(residual),
      residual_2_(residual) {}

Tensor EncoderLayer::operator()(const Tensor& x, const AttentionMask& mask) const {
  if (!checkpointing()) return forward(x, mask).states;
  return checkpoint({x}, [this, mask](std::span<const Tensor> inputs) { return forward(inputs[0], mask).states; });
}

AttentionOutput EncoderLayer::forward(const Tensor& x, const AttentionMask& mask) const {
  AttentionOutput attended;
  const Tensor h = residual_1_(x, [&](const Tensor& y) {
    attended = self_attention_->forward(y, y, mask);
    return attended.states;
  });
  return {residual_2_(h, feed_forward_), attended.weights};
}

void EncoderLayer::visit(Visitor& v) {
  v("self_attention", *self_attention_);
  v("residual_1", residual_1_);
  v("feed_forward", feed_forward_);
  v("residual_2", residual_2_);
}

}  // namespace attune
