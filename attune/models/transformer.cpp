#include "attune/models/transformer.h"

#include <algorithm>

#include "attune/autograd/graph.h"
#include "attune/base/fail.h"
#include "attune/ops/gather.h"
#include "attune/ops/residual.h"
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

// Restores the padding: each row of `states` goes to the place of its id in ids [batch, length], zeros elsewhere.
Tensor with_padding(const Tensor& states, const Packing& packing, const Tensor& ids) {
  return gather(states, packing.unpack).reshape({ids.size(0), ids.size(1), states.size(1)});
}

}  // namespace

Transformer::Transformer(TransformerConfig config, Parts parts)
    : config_(std::move(config)), parts_(std::move(parts)) {}

Transformer::EncoderInput Transformer::encoder_input(const PackedTokens& src) const {
  return {.x = (*parts_.source_embedding)(src.ids, src.sequences),
          .mask = {.queries = src.sequences, .keys = src.sequences}};
}

Transformer::DecoderInput Transformer::decoder_input(const Tensor& memory, const Sequences& source,
                                                     const PackedTokens& tgt) const {
  return {.x = (*parts_.target_embedding)(tgt.ids, tgt.sequences),
          .memory = memory,
          .self_mask = {.queries = tgt.sequences, .keys = tgt.sequences, .causal = true},
          .cross_mask = {.queries = tgt.sequences, .keys = source}};
}

Tensor Transformer::encode(const PackedTokens& src) const {
  const EncoderInput in = encoder_input(src);
  return (*parts_.encoder)(in.x, in.mask);
}

EncoderOutput Transformer::encode_with_weights(const PackedTokens& src) const {
  const EncoderInput in = encoder_input(src);
  return parts_.encoder->forward(in.x, in.mask);
}

Tensor Transformer::decode(const Tensor& memory, const Sequences& source, const PackedTokens& tgt) const {
  const DecoderInput in = decoder_input(memory, source, tgt);
  return (*parts_.decoder)(in.x, in.memory, in.self_mask, in.cross_mask);
}

DecoderOutput Transformer::decode_with_weights(const Tensor& memory, const Sequences& source,
                                               const PackedTokens& tgt) const {
  DecoderInput in = decoder_input(memory, source, tgt);
  in.self_mask.with_weights = in.cross_mask.with_weights = true;
  return parts_.decoder->forward(in.x, in.memory, in.self_mask, in.cross_mask);
}

std::vector<Tensor> Transformer::cross_weights(const Tensor& memory, const Sequences& source,
                                               const PackedTokens& tgt) const {
  DecoderInput in = decoder_input(memory, source, tgt);
  in.cross_mask.with_weights = true;
  return parts_.decoder->forward(in.x, in.memory, in.self_mask, in.cross_mask).cross_weights;
}

CrossEntropy Transformer::loss(const PackedTokens& src, const PackedTokens& tgt, const Indices& labels,
                               const CrossEntropyOptions& options) const {
  return parts_.projection->loss(decode(encode(src), src.sequences, tgt), labels, options);
}

std::optional<CrossHead> Transformer::alignment_head() const {
  if (config_.alignment_layer == 0) return {};
  return CrossHead{.layer = config_.alignment_layer - 1, .head = config_.alignment_head - 1};
}

CrossEntropy Transformer::loss(const PackedTokens& src, const PackedTokens& tgt, const Indices& labels,
                               const CrossEntropyOptions& options, const GuidedAlignment& guided) const {
  const std::optional<CrossHead> head = alignment_head();
  if (!head) fail<ConfigError>("alignment_layer = 0: the model has no head that alignments could guide");
  DecoderInput in = decoder_input(encode(src), src.sequences, tgt);
  const AttentionGuide guide{
      .links = guided.links, .head = head->head, .loss_scale = guided.weight * loss_scale(labels, options)};
  in.cross_mask.guide = &guide;
  const GuidedDecoderOutput decoded = parts_.decoder->guided(in.x, in.memory, in.self_mask, in.cross_mask, head->layer);
  CrossEntropy result = parts_.projection->loss(decoded.states, labels, options);
  result.guided_loss = decoded.loss.detach();
  result.loss = residual_dropout(result.loss.reshape({1}), decoded.loss.reshape({1})).reshape({});
  return result;
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
  return parts_.decoder->steps(x, counts, positions, cache, {.wanted = with_cross_weights, .head = alignment_head()});
}

Transformer::EncoderInput Transformer::encoder_input(const Tensor& src, const Mask& src_mask) const {
  check_batch("encode", src);
  const Packing packing = packing_of(src.size(0), src.size(1), src_mask);
  EncoderInput in = encoder_input(pack_batch(src, packing));
  in.mask = attention_mask(src_mask, packing.sequences, packing.sequences);
  in.packing = packing;
  return in;
}

Transformer::DecoderInput Transformer::decoder_input(const Tensor& memory, const Mask& src_mask, const Tensor& tgt,
                                                     const Mask& tgt_mask) const {
  check_batch("decode", tgt);
  if (memory.rank() != 3 || memory.size(0) != tgt.size(0) || memory.size(2) != config_.d_model)
    fail<ShapeError>("decode: memory {} does not fit tgt {}", memory.shape().text(), tgt.shape().text());
  const Packing source = packing_of(memory.size(0), memory.size(1), src_mask);
  const Packing target = packing_of(tgt.size(0), tgt.size(1), tgt_mask);
  DecoderInput in = decoder_input(gather(memory.reshape({-1, config_.d_model}), source.pack), source.sequences,
                                  pack_batch(tgt, target));
  in.self_mask = attention_mask(tgt_mask, target.sequences, target.sequences);
  in.cross_mask = attention_mask(src_mask, target.sequences, source.sequences);
  in.packing = target;
  return in;
}

Tensor Transformer::encode(const Tensor& src, const Mask& src_mask) const {
  const EncoderInput in = encoder_input(src, src_mask);
  return with_padding((*parts_.encoder)(in.x, in.mask), in.packing, src);
}

EncoderOutput Transformer::encode_with_weights(const Tensor& src, const Mask& src_mask) const {
  const EncoderInput in = encoder_input(src, src_mask);
  EncoderOutput output = parts_.encoder->forward(in.x, in.mask);
  output.states = with_padding(output.states, in.packing, src);
  return output;
}

Tensor Transformer::decode(const Tensor& memory, const Mask& src_mask, const Tensor& tgt, const Mask& tgt_mask) const {
  const DecoderInput in = decoder_input(memory, src_mask, tgt, tgt_mask);
  return with_padding((*parts_.decoder)(in.x, in.memory, in.self_mask, in.cross_mask), in.packing, tgt);
}

DecoderOutput Transformer::decode_with_weights(const Tensor& memory, const Mask& src_mask, const Tensor& tgt,
                                               const Mask& tgt_mask) const {
  DecoderInput in = decoder_input(memory, src_mask, tgt, tgt_mask);
  in.self_mask.with_weights = in.cross_mask.with_weights = true;
  DecoderOutput output = parts_.decoder->forward(in.x, in.memory, in.self_mask, in.cross_mask);
  output.states = with_padding(output.states, in.packing, tgt);
  return output;
}

void Transformer::visit(Visitor& v) {
  v("source_embedding", *parts_.source_embedding);
  v("target_embedding", *parts_.target_embedding);
  v("encoder", *parts_.encoder);
  v("decoder", *parts_.decoder);
  v("projection", *parts_.projection);
}

}  // namespace attune
