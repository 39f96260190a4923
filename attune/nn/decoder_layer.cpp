#include "attune/nn/decoder_layer.h"

namespace attune {

DecoderLayer::DecoderLayer(std::unique_ptr<Attention> self_attention, std::unique_ptr<Attention> cross_attention,
                           const FeedForwardConfig& feed_forward, const ResidualConnectionConfig& residual)
    : self_attention_(std::move(self_attention)),
      cross_attention_(std::move(cross_attention)),
      feed_forward_(feed_forward),
      residual_1_(residual),
      residual_2_(residual),
      residual_3_(residual) {}

Tensor DecoderLayer::operator()(const Tensor& x, const Tensor& memory, const AttentionMask& self_mask,
                                const AttentionMask& cross_mask) const {
  const Tensor h = residual_1_(x, [&](const Tensor& y) { return (*self_attention_)(y, y, self_mask); });
  const Tensor g = residual_2_(h, [&](const Tensor& y) { return (*cross_attention_)(y, memory, cross_mask); });
  return residual_3_(g, feed_forward_);
}

KvCache::Layer DecoderLayer::make_cache(const Tensor& memory) const {
  KvCache::Layer layer{.self = self_attention_->make_cache(), .cross = cross_attention_->make_cache()};
  cross_attention_->append(memory, layer.cross);
  return layer;
}

Tensor DecoderLayer::step(const Tensor& x, KvCache::Layer& layer, const KvCache& cache) const {
  const Tensor h = residual_1_(x, [&](const Tensor& y) {
    self_attention_->append(y, layer.self);
    return self_attention_->attend(y, layer.self, cache.self_table);
  });
  const Tensor g =
      residual_2_(h, [&](const Tensor& y) { return cross_attention_->attend(y, layer.cross, cache.cross_table); });
  return residual_3_(g, feed_forward_);
}

void DecoderLayer::visit(Visitor& v) {
  v("self_attention", *self_attention_);
  v("residual_1", residual_1_);
  v("cross_attention", *cross_attention_);
  v("residual_2", residual_2_);
  v("feed_forward", feed_forward_);
  v("residual_3", residual_3_);
}

}  // namespace attune
