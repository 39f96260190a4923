#include "attune/nn/encoder_layer.h"

namespace attune {

EncoderLayer::EncoderLayer(std::unique_ptr<Attention> self_attention, std::unique_ptr<FeedForwardNetwork> feed_forward,
                           const ResidualConnectionConfig& residual, const LayerOptions& options)
    : self_attention_(std::move(self_attention)),
      feed_forward_(std::move(feed_forward)),
      residual_1_(of_attention(residual, options)),
      residual_2_(residual),
      parallel_(options.parallel) {}

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
  const Tensor read = residual_2_.input(parallel_ ? x : h);
  return {residual_2_.output(h, (*feed_forward_)(read)), attended.weights};
}

void EncoderLayer::visit(Visitor& v) {
  v("self_attention", *self_attention_);
  v("residual_1", residual_1_);
  v("feed_forward", *feed_forward_);
  v("residual_2", residual_2_);
}

}  // namespace attune
