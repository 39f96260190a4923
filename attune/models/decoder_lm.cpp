#include "attune/models/decoder_lm.h"

#include "attune/autograd/graph.h"
#include "attune/base/fail.h"
#include "attune/ops/gather.h"

namespace attune {

DecoderLm::DecoderLm(TransformerConfig config, Parts parts) : config_(std::move(config)), parts_(std::move(parts)) {}

Tensor DecoderLm::decode(const PackedTokens& tokens, DecoderWeights* weights) const {
  const AttentionMask mask{.queries = tokens.sequences, .keys = tokens.sequences, .causal = true};
  return (*parts_.decoder)((*parts_.embedding)(tokens.ids, positions_of(tokens.sequences)), {}, mask, {}, weights);
}

CrossEntropy DecoderLm::loss(const PackedTokens& tokens, const Indices& labels,
                             const CrossEntropyOptions& options) const {
  return parts_.projection->loss(decode(tokens), labels, options);
}

Tensor DecoderLm::prompt_states(const PackedTokens& prompts, KvCache& cache) const {
  for (int64_t r = 0; r < prompts.sequences.count(); ++r) {
    if (prompts.sequences.length(r) > config_.context_length)
      fail<DataError>("the prompt has {} tokens, the model's context_length is {}", prompts.sequences.length(r),
                      config_.context_length);
  }
  const Tensor x = (*parts_.embedding)(prompts.ids, positions_of(prompts.sequences));
  return parts_.decoder->prompt(x, prompts.sequences, cache);
}

Tensor DecoderLm::prompt(const PackedTokens& prompts, KvCache& cache) const {
  const NoGrad no_grad;
  std::vector<int32_t> last;
  for (int64_t r = 0; r < prompts.sequences.count(); ++r) {
    if (prompts.sequences.length(r) < 1) fail<ShapeError>("prompt: that of row {} is empty", r);
    last.push_back(static_cast<int32_t>(prompts.sequences.begin(r) + prompts.sequences.length(r) - 1));
  }
  const Tensor states = prompt_states(prompts, cache);
  return project(gather(states, std::move(last)));
}

void DecoderLm::read(const PackedTokens& prompts, KvCache& cache) const {
  const NoGrad no_grad;
  if (prompts.sequences.total() > 0) prompt_states(prompts, cache);
}

Tensor DecoderLm::steps(std::span<const int32_t> tokens, std::span<const int32_t> counts, KvCache& cache) const {
  if (static_cast<int64_t>(counts.size()) != cache.rows())
    fail<ShapeError>("steps: {} counts for a cache of {} rows", counts.size(), cache.rows());
  const NoGrad no_grad;
  std::vector<int32_t> positions;
  for (size_t r = 0; r < counts.size(); ++r) {
    const int32_t position = cache.position(static_cast<int64_t>(r));
    if (counts[r] > config_.context_length - position)
      fail<DataError>("row {} has {} tokens, the model's context_length is {}", r, position + counts[r],
                      config_.context_length);
    for (int32_t i = 0; i < counts[r]; ++i) positions.push_back(position + i);
  }
  if (positions.size() != tokens.size())
    fail<ShapeError>("steps: {} tokens, the counts are for {}", tokens.size(), positions.size());
  const Tensor x = (*parts_.embedding)(Indices(tokens), std::move(positions));
  return project(parts_.decoder->steps(x, counts, cache));
}

Tensor DecoderLm::step(std::span<const int32_t> tokens, KvCache& cache) const {
  if (static_cast<int64_t>(tokens.size()) != cache.rows())
    fail<ShapeError>("step: {} tokens for a cache of {} rows", tokens.size(), cache.rows());
  const NoGrad no_grad;
  for (int64_t r = 0; r < cache.rows(); ++r) {
    if (cache.position(r) >= config_.context_length)
      fail<DataError>("row {} has {} tokens, the model's context_length", r, config_.context_length);
  }
  const Tensor x = (*parts_.embedding)(Indices(tokens), cache.positions());
  return project(parts_.decoder->step(x, cache));
}

void DecoderLm::visit(Visitor& v) {
  v("embedding", *parts_.embedding);
  v("decoder", *parts_.decoder);
  v("projection", *parts_.projection);
}

}  // namespace attune
