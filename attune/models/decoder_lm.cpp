#include "attune/models/decoder_lm.h"

#include "attune/autograd/graph.h"
#include "attune/base/fail.h"
#include "attune/ops/gather.h"

namespace attune {

DecoderLm::DecoderLm(TransformerConfig config, Parts parts) : config_(std::move(config)), parts_(std::move(parts)) {}

Tensor DecoderLm::decode(const PackedTokens& tokens) const {
  const AttentionMask mask{.queries = tokens.sequences, .keys = tokens.sequences, .causal = true};
  return (*parts_.decoder)((*parts_.embedding)(tokens.ids, tokens.sequences), {}, mask, {});
}

DecoderOutput DecoderLm::decode_with_weights(const PackedTokens& tokens) const {
  const AttentionMask mask{.queries = tokens.sequences, .keys = tokens.sequences, .causal = true, .with_weights = true};
  return parts_.decoder->forward((*parts_.embedding)(tokens.ids, tokens.sequences), {}, mask, {});
}

CrossEntropy DecoderLm::loss(const PackedTokens& tokens, const Indices& labels,
                             const CrossEntropyOptions& options) const {
  return parts_.projection->loss(projected_states(decode(tokens)), labels, options);
}

Tensor DecoderLm::embed_next(std::span<const int32_t> tokens, std::span<const int32_t> counts, const Indices& positions,
                             const KvCache& cache) const {
  check_step_tokens(tokens, counts, cache);
  for (size_t r = 0; r < counts.size(); ++r) {
    const int32_t position = cache.position(static_cast<int64_t>(r));
    if (counts[r] > config_.context_length - position)
      fail<DataError>("row {} has {} tokens, the model's context_length is {}", r, position + counts[r],
                      config_.context_length);
  }
  return (*parts_.embedding)(Indices(tokens), positions);
}

Tensor DecoderLm::prompt_states(std::span<const int32_t> tokens, std::span<const int32_t> counts,
                                KvCache& cache) const {
  const NoGrad no_grad;
  return parts_.decoder->prompts(embed_next(tokens, counts, cache.positions(counts), cache), counts, cache);
}

Tensor DecoderLm::step_states(std::span<const int32_t> tokens, std::span<const int32_t> counts, KvCache& cache) const {
  const NoGrad no_grad;
  const Indices positions = cache.positions(counts);
  return parts_.decoder->steps(embed_next(tokens, counts, positions, cache), counts, positions, cache).states;
}

Tensor DecoderLm::prompt(const PackedTokens& prompts, KvCache& cache) const {
  const NoGrad no_grad;
  std::vector<int32_t> counts, last;
  for (int64_t r = 0; r < prompts.sequences.count(); ++r) {
    counts.push_back(static_cast<int32_t>(prompts.sequences.length(r)));
    if (counts.back() < 1) fail<ShapeError>("prompt: that of row {} is empty", r);
    last.push_back(static_cast<int32_t>(prompts.sequences.begin(r)) + counts.back() - 1);
  }
  const Tensor states = prompt_states(prompts.ids.values(), counts, cache);
  return project(gather(states, std::move(last)));
}

Tensor DecoderLm::step(std::span<const int32_t> tokens, KvCache& cache) const {
  const NoGrad no_grad;
  return project(step_states(tokens, std::vector<int32_t>(static_cast<size_t>(cache.rows()), 1), cache));
}

void DecoderLm::visit(Visitor& v) {
  v("embedding", *parts_.embedding);
  v("decoder", *parts_.decoder);
  if (parts_.state_projection) v("state_projection", *parts_.state_projection);
  v("projection", *parts_.projection);
}

}  // namespace attune
