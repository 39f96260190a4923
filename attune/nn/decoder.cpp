#include "attune/nn/decoder.h"

#include <numeric>

#include "attune/ops/precision.h"

namespace attune {

Decoder::Decoder(std::vector<std::shared_ptr<DecoderLayer>> layers, std::unique_ptr<LayerNorm> final_norm)
    : layers_(std::move(layers)), norm_(std::move(final_norm)) {}

Tensor Decoder::operator()(const Tensor& x, const Tensor& memory, AttentionMask self_mask, AttentionMask cross_mask,
                           DecoderWeights* weights) const {
  if (weights != nullptr) {
    weights->self.resize(layers_.size());
    weights->cross.resize(layers_.size());
  }
  Tensor h = x;
  const Tensor source = memory.defined() ? for_products(memory) : memory;
  for (size_t i = 0; i < layers_.size(); ++i) {
    self_mask.weights = weights != nullptr ? &weights->self[i] : nullptr;
    cross_mask.weights = weights != nullptr ? &weights->cross[i] : nullptr;
    h = (*layers_[i])(h, source, self_mask, cross_mask);
  }
  return norm_ ? (*norm_)(h) : h;
}

KvCache Decoder::make_cache(const Tensor& memory, const Sequences& source) const {
  KvCache cache;
  cache.source = source;
  const Tensor positions = positions_of(source);
  for (const auto& layer : layers_) cache.layers.push_back(layer->make_cache(memory, positions));
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

KvCache Decoder::make_cache(int64_t rows) const {
  KvCache cache;
  for (const auto& layer : layers_) cache.layers.push_back(layer->make_cache({}, {}));
  const auto count = static_cast<size_t>(rows);
  cache.cross_table = {.slots = {}, .begin = std::vector<int32_t>(count, 0), .end = std::vector<int32_t>(count, 0)};
  cache.self_table = cache.cross_table;
  cache.row_of_source.resize(count);
  std::iota(cache.row_of_source.begin(), cache.row_of_source.end(), 0);
  return cache;
}

Tensor Decoder::prompt(const Tensor& x, const Sequences& prompts, KvCache& cache) const {
  if (x.rank() != 2 || x.size(0) != prompts.total() || prompts.count() != cache.rows())
    fail<ShapeError>("decoder prompt: {} for {} prompts of {} tokens and a cache of {} rows", x.shape().text(),
                     prompts.count(), prompts.total(), cache.rows());
  if (!layers_.empty() && layers_.front()->cross_attention() != nullptr)
    fail<ShapeError>("decoder prompt: this decoder has cross-attention");
  if (!cache.self_table.slots.empty()) fail<ShapeError>("decoder prompt: the cache has tokens already");
  const AttentionMask mask{.queries = prompts, .keys = prompts, .causal = true};
  const Tensor positions = positions_of(prompts);
  const auto first = static_cast<int32_t>(layers_.empty() ? 0 : cache.layers.front().self.keys.size());
  Tensor h = x;
  for (size_t i = 0; i < layers_.size(); ++i) h = layers_[i]->prompt(h, positions, mask, cache.layers[i]);
  cache.self_table.slots.resize(static_cast<size_t>(prompts.total()));
  std::iota(cache.self_table.slots.begin(), cache.self_table.slots.end(), first);
  cache.self_table.begin.assign(prompts.offsets().begin(), prompts.offsets().end() - 1);
  cache.self_table.end.assign(prompts.offsets().begin() + 1, prompts.offsets().end());
  return norm_ ? (*norm_)(h) : h;
}

Tensor Decoder::step(const Tensor& x, KvCache& cache) const {
  if (x.rank() != 2 || x.size(0) != cache.rows())
    fail<ShapeError>("decoder step: {} for a cache of {} rows", x.shape().text(), cache.rows());
  const Tensor positions = cache.positions();
  if (!layers_.empty()) cache.extend(cache.layers.front().self.keys.size());
  Tensor h = x;
  for (size_t i = 0; i < layers_.size(); ++i) h = layers_[i]->step(h, positions, cache.layers[i], cache);
  return norm_ ? (*norm_)(h) : h;
}

void Decoder::visit(Visitor& v) {
  for (size_t i = 0; i < layers_.size(); ++i)
    if (i == 0 || layers_[i] != layers_[0]) v("layers." + std::to_string(i), *layers_[i]);
  if (norm_) v("norm", *norm_);
}

}  // namespace attune
