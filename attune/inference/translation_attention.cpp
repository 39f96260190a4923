#include "attune/inference/translation_attention.h"

#include "attune/autograd/graph.h"
#include "attune/models/transformer.h"

namespace attune {
namespace {

PackedTokens one_sequence(std::span<const int32_t> ids) {
  return pack_tokens(ids, {0, static_cast<int32_t>(ids.size())});
}

}  // namespace

TranslationAttention translation_attention(const Transformer& model, std::span<const int32_t> source,
                                           std::span<const int32_t> target) {
  const NoGrad no_grad;
  const PackedTokens packed_source = one_sequence(source);
  EncoderOutput encoded = model.encode_with_weights(packed_source);
  DecoderOutput decoded = model.decode_with_weights(encoded.states, packed_source.sequences, one_sequence(target));
  return {std::move(encoded.weights), std::move(decoded.self_weights), std::move(decoded.cross_weights)};
}

std::vector<Tensor> cross_attention_weights(const Transformer& model, std::span<const int32_t> source,
                                            std::span<const int32_t> target) {
  const NoGrad no_grad;
  const PackedTokens packed_source = one_sequence(source);
  return model.cross_weights(model.encode(packed_source), packed_source.sequences, one_sequence(target));
}

}  // namespace attune
