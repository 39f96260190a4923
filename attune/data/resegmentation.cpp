#include "attune/data/resegmentation.h"

namespace attune {
namespace {

constexpr uint64_t kResegmentationStream = uint64_t{0x73756277} << 32;  // "subw": others have other streams

// The generator of an example in a forward pass. Each pass adds a large odd number, as in DropoutMask::key().
Random random_of(uint64_t seed, int32_t example, uint64_t forward) {
  return Random(seed + forward * 0x9E3779B97F4A7C15u, kResegmentationStream + static_cast<uint32_t>(example));
}

std::span<const int32_t> sequence(const std::vector<int32_t>& ids, const std::vector<int32_t>& offsets, size_t i) {
  return std::span(ids).subspan(static_cast<size_t>(offsets[i]), static_cast<size_t>(offsets[i + 1] - offsets[i]));
}

void append(std::span<const int32_t> sequence, std::vector<int32_t>& ids, std::vector<int32_t>& offsets) {
  ids.insert(ids.end(), sequence.begin(), sequence.end());
  offsets.push_back(static_cast<int32_t>(ids.size()));
}

}  // namespace

Resegmentation::Resegmentation(const Tokenizer& source, const Tokenizer& target, const ResegmentationOptions& options)
    : source_(source, options.alpha), target_(target, options.alpha), options_(options) {}

std::vector<int32_t> Resegmentation::drawn(const SubwordSampler& sampler, std::span<const int32_t> ids,
                                           Random& random) const {
  std::vector<int32_t> sampled = sampler.sample(ids, random);
  if (static_cast<int64_t>(sampled.size()) > options_.longest) sampled.assign(ids.begin(), ids.end());
  return sampled;
}

PackedBatch Resegmentation::operator()(const PackedBatch& batch, std::span<const int32_t> examples,
                                       uint64_t forward) const {
  PackedBatch result;
  result.source_offsets = result.target_offsets = {0};
  for (size_t i = 0; i < examples.size(); ++i) {
    Random random = random_of(options_.seed, examples[i], forward);
    append(drawn(source_, sequence(batch.source, batch.source_offsets, i), random), result.source,
           result.source_offsets);
    const std::vector<int32_t> labels = drawn(target_, sequence(batch.labels, batch.target_offsets, i), random);
    append(labels, result.labels, result.target_offsets);
    // The decoder reads the token before each label.
    result.target_input.push_back(sequence(batch.target_input, batch.target_offsets, i).front());
    result.target_input.insert(result.target_input.end(), labels.begin(), labels.end() - 1);
  }
  return result;
}

LabelledBatch Resegmentation::operator()(const LabelledBatch& batch, std::span<const int32_t> examples,
                                         uint64_t forward) const {
  LabelledBatch result = batch;
  result.tokens.clear();
  result.offsets = {0};
  for (size_t i = 0; i < examples.size(); ++i) {
    Random random = random_of(options_.seed, examples[i], forward);
    append(drawn(source_, sequence(batch.tokens, batch.offsets, i), random), result.tokens, result.offsets);
  }
  return result;
}

}  // namespace attune
