#include "attune/data/batch_sampler.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "attune/base/fail.h"
#include "attune/base/random.h"

namespace attune {
namespace {

constexpr int64_t kBatchesPerPool = 64;

using Lengths = std::vector<std::pair<int32_t, int32_t>>;

int32_t longer_side(const std::pair<int32_t, int32_t>& lengths) {
  return std::max(lengths.first, lengths.second);
}

/// Random order, then each pool sorted by length, by turns upwards and downwards: a batch that reaches over the border
/// of two pools has similar lengths too.
void order_by_length_in_pools(std::vector<int32_t>& order, const Lengths& lengths, const BatchSamplerOptions& options,
                              Random& random) {
  random.shuffle(order);
  const auto length = [&](int32_t example) { return longer_side(lengths[static_cast<size_t>(example)]); };
  bool upwards = true;
  for (auto begin = order.begin(); begin != order.end();) {
    auto end = begin;
    int64_t tokens = 0, sentences = 0;
    while (end != order.end() && tokens < kBatchesPerPool * options.max_tokens &&
           (options.max_sentences == 0 || sentences < kBatchesPerPool * options.max_sentences)) {
      tokens += std::max(length(*end++), 1);
      ++sentences;
    }
    std::stable_sort(begin, end,
                     [&](int32_t a, int32_t b) { return upwards ? length(a) < length(b) : length(a) > length(b); });
    begin = end;
    upwards = !upwards;
  }
}

/// Cuts the order into batches, each as long as the budgets allow.
std::vector<std::vector<int32_t>> cut(const std::vector<int32_t>& order, const Lengths& lengths,
                                      const BatchSamplerOptions& options) {
  std::vector<std::vector<int32_t>> batches;
  int64_t source = 0, target = 0;
  for (const int32_t example : order) {
    const auto [source_length, target_length] = lengths[static_cast<size_t>(example)];
    source += source_length;
    target += target_length;
    const bool full = !batches.empty() && options.max_sentences > 0 &&
                      static_cast<int64_t>(batches.back().size()) >= options.max_sentences;
    if (batches.empty() || full || source > options.max_tokens || target > options.max_tokens) {
      batches.emplace_back();
      source = source_length;
      target = target_length;
    }
    batches.back().push_back(example);
  }
  return batches;
}

}  // namespace

PackedBatch pack(std::span<const ParallelExample> examples, std::span<const int32_t> indices, int32_t bos_id) {
  int64_t source_tokens = 0, target_tokens = 0;
  for (const int32_t index : indices) {
    if (index < 0 || static_cast<size_t>(index) >= examples.size())
      fail<DataError>("example {} is outside of the {} examples", index, examples.size());
    const ParallelExample& example = examples[static_cast<size_t>(index)];
    if (example.target.empty()) fail<DataError>("the target of example {} is empty: it lacks eos", index);
    source_tokens += static_cast<int64_t>(example.source.size());
    target_tokens += static_cast<int64_t>(example.target.size());
  }
  if (std::max(source_tokens, target_tokens) > std::numeric_limits<int32_t>::max())
    fail<DataError>("a batch of {} source and {} target tokens is too large", source_tokens, target_tokens);

  PackedBatch batch;
  batch.source.reserve(static_cast<size_t>(source_tokens));
  batch.target_input.reserve(static_cast<size_t>(target_tokens));
  batch.labels.reserve(static_cast<size_t>(target_tokens));
  batch.source_offsets.assign(1, 0);
  batch.target_offsets.assign(1, 0);
  for (const int32_t index : indices) {
    const std::vector<int32_t>& source = examples[static_cast<size_t>(index)].source;
    const std::vector<int32_t>& target = examples[static_cast<size_t>(index)].target;
    batch.source.insert(batch.source.end(), source.begin(), source.end());
    batch.target_input.push_back(bos_id);
    batch.target_input.insert(batch.target_input.end(), target.begin(), target.end() - 1);
    batch.labels.insert(batch.labels.end(), target.begin(), target.end());
    batch.source_offsets.push_back(static_cast<int32_t>(batch.source.size()));
    batch.target_offsets.push_back(static_cast<int32_t>(batch.labels.size()));
  }
  return batch;
}

void BatchSamplerOptions::validate() const {
  if (max_tokens < 1 || max_tokens > std::numeric_limits<int32_t>::max())
    fail<ConfigError>("max_tokens = {} is not between 1 and 2147483647", max_tokens);
  if (max_sentences < 0 || max_sentences > std::numeric_limits<int32_t>::max())
    fail<ConfigError>("max_sentences = {} is not between 0 and 2147483647", max_sentences);
}

BatchSampler::BatchSampler(Lengths lengths, const BatchSamplerOptions& options)
    : lengths_(std::move(lengths)), options_(options) {
  options_.validate();
  if (lengths_.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max()))
    fail<DataError>("{} examples are too many for one epoch", lengths_.size());
  for (size_t i = 0; i < lengths_.size(); ++i)
    if (lengths_[i].first < 0 || lengths_[i].second < 0) fail<DataError>("example {} has a negative length", i);
}

std::vector<std::vector<int32_t>> BatchSampler::epoch(int64_t epoch) const {
  std::vector<int32_t> order(lengths_.size());
  std::iota(order.begin(), order.end(), 0);
  if (!options_.shuffle) return cut(order, lengths_, options_);
  Random random(options_.seed, static_cast<uint64_t>(epoch));
  order_by_length_in_pools(order, lengths_, options_, random);
  std::vector<std::vector<int32_t>> batches = cut(order, lengths_, options_);
  random.shuffle(batches);
  return batches;
}

std::vector<std::pair<int32_t, int32_t>> lengths_of(std::span<const ParallelExample> examples) {
  Lengths lengths;
  lengths.reserve(examples.size());
  for (const ParallelExample& e : examples)
    lengths.emplace_back(static_cast<int32_t>(e.source.size()), static_cast<int32_t>(e.target.size()));
  return lengths;
}

}  // namespace attune
