#include "attune/models/decoder_lm.h"

#include "attune/autograd/graph.h"
#include "attune/ops/take_rows.h"

namespace attune {

DecoderLm::DecoderLm(TransformerConfig config, Parts parts) : config_(std::move(config)), parts_(std::move(parts)) {}

Tensor DecoderLm::decode(const PackedTokens& tokens, DecoderWeights* weights) const {
  const AttentionMask mask{.queries = tokens.sequences, .keys = tokens.sequences, .causal = true};
  return (*parts_.decoder)((*parts_.embedding)(tokens.ids, positions_of(tokens.sequences)), {}, mask, {}, weights);
}

CrossEntropy DecoderLm::loss(const PackedTokens& tokens, const Tensor& labels,
                             const CrossEntropyOptions& options) const {
  return parts_.projection->loss(decode(tokens), labels, options);
}

Tensor DecoderLm::prompt(const PackedTokens& prompts, KvCache& cache) const {
  const NoGrad no_grad;
  std::vector<int32_t> last;
  for (int64_t r = 0; r < prompts.sequences.count(); ++r) {
    const int64_t length = prompts.sequences.length(r);
    if (length < 1) fail<ShapeError>("prompt: that of row {} is empty", r);
    if (length > config_.context_length)
      fail<DataError>("the prompt has {} tokens, the model's context_length is {}", length, config_.context_length);
    last.push_back(static_cast<int32_t>(prompts.sequences.begin(r) + length - 1));
  }
  const Tensor x = (*parts_.embedding)(prompts.ids, positions_of(prompts.sequences));
  const Tensor states = parts_.decoder->prompt(x, prompts.sequences, cache);
  return project(take_rows(states, Tensor::from({static_cast<int64_t>(last.size())}, last)));
}

Tensor DecoderLm::step(std::span<const int32_t> tokens, KvCache& cache) const {
  if (static_cast<int64_t>(tokens.size()) != cache.rows())
    fail<ShapeError>("step: {} tokens for a cache of {} rows", tokens.size(), cache.rows());
  const NoGrad no_grad;
  for (int64_t r = 0; r < cache.rows(); ++r) {
    if (cache.position(r) >= config_.context_length)
      fail<DataError>("row {} has {} tokens, the model's context_length", r, config_.context_length);
  }
  const Tensor x = (*parts_.embedding)(Tensor::from({cache.rows()}, tokens), cache.positions());
  return project(parts_.decoder->step(x, cache));
}

void DecoderLm::visit(Visitor& v) {
  v("embedding", *parts_.embedding);
  v("decoder", *parts_.decoder);
  v("projection", *parts_.projection);
}

}  // namespace attune
