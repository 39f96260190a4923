#include "attune/nn/decoder.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "attune/base/execution.h"
#include "attune/base/fail.h"
#include "attune/ops/attention/mean_over_heads.h"
#include "attune/ops/gather.h"
#include "attune/ops/linear/precision.h"

namespace attune {

void check_step_tokens(std::span<const int32_t> tokens, std::span<const int32_t> counts, const KvCache& cache) {
  const int64_t total = std::accumulate(counts.begin(), counts.end(), int64_t{0});
  if (static_cast<int64_t>(counts.size()) != cache.rows() || static_cast<int64_t>(tokens.size()) != total)
    fail<ShapeError>("step: {} tokens, the counts of {} rows are for {}, the cache has {} rows", tokens.size(),
                     counts.size(), total, cache.rows());
}

Decoder::Decoder(std::vector<std::shared_ptr<DecoderLayer>> layers, std::unique_ptr<LayerNorm> final_norm,
                 std::shared_ptr<RelativeBias> relative_bias)
    : LayerStack(Place::decoder),
      layers_(std::move(layers)),
      norm_(std::move(final_norm)),
      relative_bias_(std::move(relative_bias)) {}

Tensor Decoder::operator()(const Tensor& x, const Tensor& memory, const AttentionMask& self_mask,
                           const AttentionMask& cross_mask) const {
  Tensor h = x;
  const Tensor source = memory.defined() ? for_products(memory) : memory;
  for (size_t i = 0; i < layers_.size(); ++i) {
    const LayerUse use(layers_, i);
    if (!leaves_out(static_cast<int64_t>(i))) h = (*layers_[i])(h, source, self_mask, cross_mask);
  }
  return norm_ ? (*norm_)(h) : h;
}

DecoderOutput Decoder::forward(const Tensor& x, const Tensor& memory, const AttentionMask& self_mask,
                               const AttentionMask& cross_mask) const {
  const std::vector<Tensor> none(layers_.size());
  DecoderOutput result{.states = x, .self_weights = none, .cross_weights = none};
  const Tensor source = memory.defined() ? for_products(memory) : memory;
  for (size_t i = 0; i < layers_.size(); ++i) {
    const LayerUse use(layers_, i);
    if (leaves_out(static_cast<int64_t>(i))) continue;
    const DecoderLayerOutput output = layers_[i]->forward(result.states, source, self_mask, cross_mask);
    result.states = output.states;
    result.self_weights[i] = output.self_weights;
    result.cross_weights[i] = output.cross_weights;
  }
  if (norm_) result.states = (*norm_)(result.states);
  return result;
}

GuidedDecoderOutput Decoder::guided(const Tensor& x, const Tensor& memory, const AttentionMask& self_mask,
                                    const AttentionMask& cross_mask, int64_t layer) const {
  if (layer < 0 || layer >= std::ssize(layers_) || layers_[static_cast<size_t>(layer)]->cross_attention() == nullptr)
    fail<ConfigError>("decoder: layer {} of {} has no cross-attention to guide", layer + 1, layers_.size());
  AttentionMask other_mask = cross_mask;
  other_mask.guide = nullptr;
  GuidedDecoderOutput output{.states = x, .loss = {}};
  const Tensor source = for_products(memory);
  for (int64_t i = 0; i < std::ssize(layers_); ++i) {
    const DecoderLayer& at = *layers_[static_cast<size_t>(i)];
    const LayerUse use(layers_, static_cast<size_t>(i));
    if (i != layer) {
      if (!leaves_out(i)) output.states = at(output.states, source, self_mask, other_mask);
      continue;
    }
    const DecoderLayerOutput guided = at.forward(output.states, source, self_mask, cross_mask);
    output = {.states = guided.states, .loss = guided.guided_loss};
  }
  if (norm_) output.states = (*norm_)(output.states);
  return output;
}

KvCache Decoder::make_cache(int64_t rows) const {
  KvCache cache;
  for (const auto& layer : layers_) cache.layers.push_back(layer->make_cache());
  cache.add_rows(rows);
  return cache;
}

void Decoder::add_sources(const Tensor& memory, const Sequences& source, KvCache& cache) const {
  if (memory.rank() != 2 || memory.size(0) != source.total())
    fail<ShapeError>("decoder: memory {} for {} source tokens", memory.shape().text(), source.total());
  std::vector<int32_t> lengths(static_cast<size_t>(cache.rows()), 0);
  for (int64_t i = 0; i < source.count(); ++i) lengths.push_back(static_cast<int32_t>(source.length(i)));
  cache.add_rows(source.count());
  const std::span<const int32_t> slots = cache.source.extend(lengths);
  const Indices positions = source.positions();
  for (size_t i = 0; i < layers_.size(); ++i) layers_[i]->add_source(memory, positions, slots, cache.layers[i]);
}

namespace {

void check_tokens(const char* op, const Tensor& x, std::span<const int32_t> counts, const KvCache& cache) {
  if (static_cast<int64_t>(counts.size()) != cache.rows() || x.rank() != 2 ||
      x.size(0) != std::accumulate(counts.begin(), counts.end(), int64_t{0}))
    fail<ShapeError>("{}: {} for {} rows in a cache of {} rows", op, x.shape().text(), counts.size(), cache.rows());
}

// The slots that each new token sees: those of its row; if causal, only up to the token itself.
struct TokenQueries {
  std::vector<int32_t> begin, end;

  TokenQueries(const SlotTable& rows, std::span<const int32_t> counts, bool causal) {
    for (size_t r = 0; r < counts.size(); ++r) {
      for (int32_t later = counts[r] - 1; later >= 0; --later) {
        begin.push_back(rows.begin[r]);
        end.push_back(rows.end[r] - (causal ? later : 0));
      }
    }
  }
  SlotTable table(const SlotTable& rows) const { return {.slots = rows.slots, .begin = begin, .end = end}; }
};

}  // namespace

Tensor Decoder::prompts(const Tensor& x, std::span<const int32_t> counts, KvCache& cache) const {
  check_tokens("decoder prompts", x, counts, cache);
  if (!layers_.empty() && layers_.front()->cross_attention() != nullptr)
    fail<ShapeError>("decoder prompts: this decoder has cross-attention");
  std::vector<int32_t> lengths;
  for (size_t r = 0; r < counts.size(); ++r) {
    if (counts[r] == 0) continue;
    if (cache.position(static_cast<int64_t>(r)) > 0) fail<ShapeError>("decoder prompts: row {} has tokens already", r);
    lengths.push_back(counts[r]);
  }
  const Sequences sequences = Sequences::from_lengths(lengths);
  const std::span<const int32_t> slots = cache.past.extend(counts);
  const AttentionMask mask{.queries = sequences, .keys = sequences, .causal = true};
  Tensor h = x;
  for (size_t i = 0; i < layers_.size(); ++i) {
    stop_if_unwanted();
    h = layers_[i]->prompt(h, mask, slots, cache.layers[i]);
  }
  return norm_ ? (*norm_)(h) : h;
}

namespace {

// The weights [rows, heads, keys] of one head: [rows, keys].
Tensor weights_of_head(const Tensor& weights, int64_t head) {
  std::vector<int32_t> rows;
  for (int64_t row = 0; row < weights.size(0); ++row)
    rows.push_back(static_cast<int32_t>(row * weights.size(1) + head));
  return gather(weights.reshape({weights.size(0) * weights.size(1), weights.size(2)}), Indices(rows));
}

}  // namespace

DecoderStep Decoder::steps(const Tensor& x, std::span<const int32_t> counts, const Indices& positions, KvCache& cache,
                           const CrossWeights& cross_weights) const {
  check_tokens("decoder step", x, counts, cache);
  CachedStep step{.slots = cache.past.extend(counts), .self = {}, .cross = {}};
  step.self = step.cross = {.positions = positions};
  SlotTable self = cache.past.table(), cross = cache.source.table();
  std::optional<TokenQueries> of_self, of_cross;
  if (std::any_of(counts.begin(), counts.end(), [](int32_t count) { return count != 1; })) {
    self = of_self.emplace(self, counts, true).table(self);
    cross = of_cross.emplace(cross, counts, false).table(cross);
  }
  step.self.table = &self;
  step.cross.table = &cross;
  DecoderStep result{.states = x};
  const std::optional<CrossHead>& head = cross_weights.head;
  const size_t layer = head ? static_cast<size_t>(head->layer) : layers_.size() - 1;
  for (size_t i = 0; i < layers_.size(); ++i) {
    stop_if_unwanted();
    step.cross.with_weights = cross_weights.wanted && i == layer;
    const AttentionOutput output = layers_[i]->step(result.states, step, cache.layers[i]);
    result.states = output.states;
    if (output.weights.defined())
      result.cross_weights = head ? weights_of_head(output.weights, head->head) : mean_over_heads(output.weights);
  }
  if (norm_) result.states = (*norm_)(result.states);
  return result;
}

void Decoder::visit(Visitor& v) {
  for (size_t i = 0; i < layers_.size(); ++i)
    if (std::find(layers_.begin(), layers_.end(), layers_[i]) - layers_.begin() == static_cast<std::ptrdiff_t>(i))
      v("layers." + std::to_string(i), *layers_[i]);
  if (norm_) v("norm", *norm_);
  if (relative_bias_) v("relative_bias", *relative_bias_);
}

}  // namespace attune
