#include "attune/nn/decoder.h"

#include <algorithm>
#include <numeric>

#include "attune/base/fail.h"
#include "attune/ops/mean_over_heads.h"
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

KvCache Decoder::make_cache(int64_t rows) const {
  KvCache cache;
  for (const auto& layer : layers_) cache.layers.push_back(layer->make_cache());
  cache.past.add_rows(rows);
  cache.source.add_rows(rows);
  return cache;
}

void Decoder::add_sources(const Tensor& memory, const Sequences& source, KvCache& cache) const {
  if (memory.rank() != 2 || memory.size(0) != source.total())
    fail<ShapeError>("decoder: memory {} for {} source tokens", memory.shape().text(), source.total());
  std::vector<int32_t> lengths(static_cast<size_t>(cache.rows()), 0);
  for (int64_t i = 0; i < source.count(); ++i) lengths.push_back(static_cast<int32_t>(source.length(i)));
  cache.past.add_rows(source.count());
  cache.source.add_rows(source.count());
  const std::span<const int32_t> slots = cache.source.extend(lengths);
  const Indices positions = positions_of(source);
  for (size_t i = 0; i < layers_.size(); ++i) layers_[i]->add_source(memory, positions, slots, cache.layers[i]);
}

Tensor Decoder::prompt(const Tensor& x, const Sequences& prompts, KvCache& cache) const {
  if (x.rank() != 2 || x.size(0) != prompts.total() || prompts.count() != cache.rows())
    fail<ShapeError>("decoder prompt: {} for {} prompts of {} tokens and a cache of {} rows", x.shape().text(),
                     prompts.count(), prompts.total(), cache.rows());
  if (!layers_.empty() && layers_.front()->cross_attention() != nullptr)
    fail<ShapeError>("decoder prompt: this decoder has cross-attention");
  if (cache.past.slots_in_use() > 0) fail<ShapeError>("decoder prompt: the cache has tokens already");
  std::vector<int32_t> lengths;
  for (int64_t i = 0; i < prompts.count(); ++i) lengths.push_back(static_cast<int32_t>(prompts.length(i)));
  const std::span<const int32_t> slots = cache.past.extend(lengths);
  const AttentionMask mask{.queries = prompts, .keys = prompts, .causal = true};
  Tensor h = x;
  for (size_t i = 0; i < layers_.size(); ++i) h = layers_[i]->prompt(h, mask, slots, cache.layers[i]);
  return norm_ ? (*norm_)(h) : h;
}

namespace {

// A query for each new token: what its row has, up to the token itself.
SlotTable table_of_tokens(const SlotTable& rows, std::span<const int32_t> counts, bool causal) {
  SlotTable table{.slots = rows.slots, .begin = {}, .end = {}};
  for (size_t r = 0; r < counts.size(); ++r) {
    for (int32_t later = counts[r] - 1; later >= 0; --later) {
      table.begin.push_back(rows.begin[r]);
      table.end.push_back(rows.end[r] - (causal ? later : 0));
    }
  }
  return table;
}

}  // namespace

Tensor Decoder::step(const Tensor& x, KvCache& cache) const {
  return steps(x, std::vector<int32_t>(static_cast<size_t>(cache.rows()), 1), cache);
}

Tensor Decoder::steps(const Tensor& x, std::span<const int32_t> counts, KvCache& cache) const {
  if (static_cast<int64_t>(counts.size()) != cache.rows() || x.rank() != 2 ||
      x.size(0) != std::accumulate(counts.begin(), counts.end(), int64_t{0}))
    fail<ShapeError>("decoder step: {} for a cache of {} rows", x.shape().text(), cache.rows());
  std::vector<int32_t> positions;
  for (size_t r = 0; r < counts.size(); ++r) {
    for (int32_t i = 0; i < counts[r]; ++i) positions.push_back(cache.position(static_cast<int64_t>(r)) + i);
  }
  CachedStep step{.slots = cache.past.extend(counts), .self = {}, .cross = {}};
  step.self = step.cross = {.positions = std::move(positions)};
  SlotTable self, cross;
  const bool single = std::all_of(counts.begin(), counts.end(), [](int32_t count) { return count == 1; });
  if (!single) {
    self = table_of_tokens(cache.past.table(), counts, true);
    cross = table_of_tokens(cache.source.table(), counts, false);
  }
  step.self.table = single ? &cache.past.table() : &self;
  step.cross.table = single ? &cache.source.table() : &cross;
  Tensor h = x, weights;
  for (size_t i = 0; i < layers_.size(); ++i) {
    if (cache.keep_cross_weights && i + 1 == layers_.size()) step.cross.weights = &weights;
    h = layers_[i]->step(h, step, cache.layers[i]);
  }
  if (weights.defined()) cache.cross_weights = mean_over_heads(weights);
  return norm_ ? (*norm_)(h) : h;
}

void Decoder::visit(Visitor& v) {
  for (size_t i = 0; i < layers_.size(); ++i)
    if (i == 0 || layers_[i] != layers_[0]) v("layers." + std::to_string(i), *layers_[i]);
  if (norm_) v("norm", *norm_);
}

}  // namespace attune
