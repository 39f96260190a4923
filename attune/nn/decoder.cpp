#include "attune/nn/decoder.h"

#include <numeric>

namespace attune {

Decoder::Decoder(std::vector<std::unique_ptr<DecoderLayer>> layers, std::unique_ptr<LayerNorm> final_norm)
    : layers_(std::move(layers)), norm_(std::move(final_norm)) {}

Tensor Decoder::operator()(const Tensor& x, const Tensor& memory, AttentionMask self_mask, AttentionMask cross_mask,
                           DecoderWeights* weights) const {
  if (weights != nullptr) {
    weights->self.resize(layers_.size());
    weights->cross.resize(layers_.size());
  }
  Tensor h = x;
  for (size_t i = 0; i < layers_.size(); ++i) {
    self_mask.weights = weights != nullptr ? &weights->self[i] : nullptr;
    cross_mask.weights = weights != nullptr ? &weights->cross[i] : nullptr;
    h = (*layers_[i])(h, memory, self_mask, cross_mask);
  }
  return norm_ ? (*norm_)(h) : h;
}

KvCache Decoder::make_cache(const Tensor& memory, const Sequences& source) const {
  KvCache cache;
  cache.source = source;
  for (const auto& layer : layers_) cache.layers.push_back(layer->make_cache(memory));
  cache.cross_table.slots.resize(static_cast<size_t>(source.total()));
  std::iota(cache.cross_table.slots.begin(), cache.cross_table.slots.end(), 0);
  for (int64_t i = 0; i < source.count(); ++i) {
    cache.cross_table.begin.push_back(static_cast<int32_t>(source.begin(i)));
    cache.cross_table.end.push_back(static_cast<int32_t>(source.begin(i) + source.length(i)));
    cache.self_table.begin.push_back(0);
    cache.self_table.end.push_back(0);
    cache.row_of_source.push_back(static_cast<int32_t>(i));
  }
  return cache;
}

Tensor Decoder::step(const Tensor& x, KvCache& cache) const {
  if (x.rank() != 2 || x.size(0) != cache.rows())
    fail<ShapeError>("decoder step: {} for a cache of {} rows", x.shape().text(), cache.rows());
  if (!layers_.empty()) cache.extend(cache.layers.front().self.keys.size());
  Tensor h = x;
  for (size_t i = 0; i < layers_.size(); ++i) h = layers_[i]->step(h, cache.layers[i], cache);
  return norm_ ? (*norm_)(h) : h;
}

void Decoder::visit(Visitor& v) {
  for (size_t i = 0; i < layers_.size(); ++i) v("layers." + std::to_string(i), *layers_[i]);
  if (norm_) v("norm", *norm_);
}

}  // namespace attune
