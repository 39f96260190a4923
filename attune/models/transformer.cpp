#include "attune/models/transformer.h"

#include "attune/autograd/graph.h"
#include "attune/base/fail.h"
#include "attune/ops/gather.h"
#include "attune/tensor/host_view.h"

namespace attune {
namespace {

void check_batch(const char* what, const Tensor& ids) {
  if (ids.rank() != 2 || ids.dtype() != DType::i32)
    fail<ShapeError>("{}: needs int32 ids [batch, length], found {} {}", what, name_of(ids.dtype()),
                     ids.shape().text());
}

PackedTokens pack_batch(const Tensor& ids, const Packing& packing) {
  const HostView view(ids);
  const auto values = view.as<int32_t>();
  std::vector<int32_t> packed;
  for (const int32_t row : packing.pack.values()) packed.push_back(values[static_cast<size_t>(row)]);
  return {std::move(packed), packing.sequences};
}

}  // namespace

Transformer::Transformer(TransformerConfig config, Parts parts)
    : config_(std::move(config)), parts_(std::move(parts)) {}

Tensor Transformer::encode(const PackedTokens& src, TransformerWeights* weights) const {
  const AttentionMask mask{.queries = src.sequences, .keys = src.sequences};
  return (*parts_.encoder)((*parts_.source_embedding)(src.ids, positions_of(src.sequences)), mask,
                           weights ? &weights->encoder : nullptr);
}

Tensor Transformer::decode(const Tensor& memory, const Sequences& source, const PackedTokens& tgt,
                           TransformerWeights* weights) const {
  const AttentionMask self{.queries = tgt.sequences, .keys = tgt.sequences, .causal = true};
  const AttentionMask cross{.queries = tgt.sequences, .keys = source};
  return (*parts_.decoder)((*parts_.target_embedding)(tgt.ids, positions_of(tgt.sequences)), memory, self, cross,
                           weights ? &weights->decoder : nullptr);
}

CrossEntropy Transformer::loss(const PackedTokens& src, const PackedTokens& tgt, const Indices& labels,
                               const CrossEntropyOptions& options) const {
  return parts_.projection->loss(decode(encode(src), src.sequences, tgt), labels, options);
}

KvCache Transformer::start(const Tensor& memory, const Sequences& source) const {
  KvCache cache = start();
  add(memory, source, cache);
  return cache;
}

void Transformer::add(const Tensor& memory, const Sequences& source, KvCache& cache) const {
  const NoGrad no_grad;
  parts_.decoder->add_sources(memory, source, cache);
}

Tensor Transformer::step(std::span<const int32_t> tokens, KvCache& cache) const {
  const NoGrad no_grad;
  return project(step_states(tokens, std::vector<int32_t>(static_cast<size_t>(cache.rows()), 1), cache).states);
}

DecoderStep Transformer::step_states(std::span<const int32_t> tokens, std::span<const int32_t> counts, KvCache& cache,
                                     bool with_cross_weights) const {
  check_step_tokens(tokens, counts, cache);
  const NoGrad no_grad;
  const Indices positions = cache.positions(counts);
  const Tensor x = (*parts_.target_embedding)(Indices(tokens), positions);
  return parts_.decoder->steps(x, counts, positions, cache, with_cross_weights);
}

Tensor Transformer::encode(const Tensor& src, const Mask& src_mask, TransformerWeights* weights) const {
  check_batch("encode", src);
  const Packing packing = packing_of(src.size(0), src.size(1), src_mask);
  const AttentionMask mask = attention_mask(src_mask, packing.sequences, packing.sequences);
  const PackedTokens tokens = pack_batch(src, packing);
  const Tensor x = (*parts_.source_embedding)(tokens.ids, positions_of(tokens.sequences));
  const Tensor memory = (*parts_.encoder)(x, mask, weights ? &weights->encoder : nullptr);
  return gather(memory, packing.unpack).reshape({src.size(0), src.size(1), config_.d_model});
}

Tensor Transformer::decode(const Tensor& memory, const Mask& src_mask, const Tensor& tgt, const Mask& tgt_mask,
                           TransformerWeights* weights) const {
  check_batch("decode", tgt);
  if (memory.rank() != 3 || memory.size(0) != tgt.size(0) || memory.size(2) != config_.d_model)
    fail<ShapeError>("decode: memory {} does not fit tgt {}", memory.shape().text(), tgt.shape().text());
  const Packing source = packing_of(memory.size(0), memory.size(1), src_mask);
  const Packing target = packing_of(tgt.size(0), tgt.size(1), tgt_mask);
  const PackedTokens tokens = pack_batch(tgt, target);
  const Tensor packed_memory = gather(memory.reshape({-1, config_.d_model}), source.pack);
  const Tensor out = (*parts_.decoder)((*parts_.target_embedding)(tokens.ids, positions_of(tokens.sequences)),
                                       packed_memory, attention_mask(tgt_mask, target.sequences, target.sequences),
                                       attention_mask(src_mask, target.sequences, source.sequences),
                                       weights ? &weights->decoder : nullptr);
  return gather(out, target.unpack).reshape({tgt.size(0), tgt.size(1), config_.d_model});
}

void Transformer::visit(Visitor& v) {
  v("source_embedding", *parts_.source_embedding);
  v("target_embedding", *parts_.target_embedding);
  v("encoder", *parts_.encoder);
  v("decoder", *parts_.decoder);
  v("projection", *parts_.projection);
}

}  // namespace attune
