#include "attune/nn/decoder_layer.h"

namespace attune {

DecoderLayer::DecoderLayer(std::unique_ptr<Attention> self_attention, std::unique_ptr<Attention> cross_attention,
                           std::unique_ptr<FeedForwardNetwork> feed_forward, const ResidualConnectionConfig& residual,
                           const LayerOptions& options)
    : self_attention_(std::move(self_attention)),
      cross_attention_(std::move(cross_attention)),
      feed_forward_(std::move(feed_forward)),
      residual_1_(of_attention(residual, options)),
      residual_2_(cross_attention_ ? std::make_unique<ResidualConnection>(residual) : nullptr),
      residual_3_(residual),
      parallel_(options.parallel) {}

Tensor DecoderLayer::operator()(const Tensor& x, const Tensor& memory, const AttentionMask& self_mask,
                                const AttentionMask& cross_mask) const {
  if (!checkpointing()) return forward(x, memory, self_mask, cross_mask).states;
  return checkpoint({x, memory}, [this, self_mask, cross_mask](std::span<const Tensor> inputs) {
    return forward(inputs[0], inputs[1], self_mask, cross_mask).states;
  });
}

DecoderLayerOutput DecoderLayer::forward(const Tensor& x, const Tensor& memory, const AttentionMask& self_mask,
                                         const AttentionMask& cross_mask) const {
  DecoderLayerOutput output;
  Tensor h = residual_1_(x, [&](const Tensor& y) {
    AttentionOutput attended = self_attention_->forward(y, y, self_mask);
    output.self_weights = attended.weights;
    return attended.states;
  });
  if (cross_attention_)
    h = (*residual_2_)(h, [&](const Tensor& y) {
      AttentionOutput attended = cross_attention_->forward(y, memory, cross_mask);
      output.cross_weights = attended.weights;
      output.guided_loss = attended.guided_loss;
      return attended.states;
    });
  output.states = feed_forward(x, h);
  return output;
}

KvCache::Layer DecoderLayer::make_cache() const {
  return {.self = self_attention_->make_cache(),
          .cross = cross_attention_ ? cross_attention_->make_cache() : AttentionCache{}};
}

void DecoderLayer::add_source(const Tensor& memory, const Indices& positions, std::span<const int32_t> slots,
                              KvCache::Layer& layer) const {
  if (cross_attention_) cross_attention_->append(memory, positions, slots, layer.cross);
}

Tensor DecoderLayer::prompt(const Tensor& x, const AttentionMask& mask, std::span<const int32_t> slots,
                            KvCache::Layer& layer) const {
  const Tensor h = residual_1_(x, [&](const Tensor& y) { return self_attention_->prompt(y, mask, slots, layer.self); });
  return feed_forward(x, h);
}

AttentionOutput DecoderLayer::step(const Tensor& x, const CachedStep& step, KvCache::Layer& layer) const {
  AttentionOutput attended;
  Tensor h =
      residual_1_(x, [&](const Tensor& y) { return self_attention_->step(y, step.self, step.slots, layer.self); });
  if (cross_attention_)
    h = (*residual_2_)(h, [&](const Tensor& y) {
      attended = cross_attention_->attend(y, step.cross, layer.cross);
      return attended.states;
    });
  return {.states = feed_forward(x, h), .weights = attended.weights};
}

void DecoderLayer::visit(Visitor& v) {
  v("self_attention", *self_attention_);
  v("residual_1", residual_1_);
  if (cross_attention_) {
    v("cross_attention", *cross_attention_);
    v("residual_2", *residual_2_);
  }
  v("feed_forward", *feed_forward_);
  v("residual_3", residual_3_);
}

}  // namespace attune
