#pragma once
// Where a model looks while it translates.

#include <cstdint>
#include <span>
#include <vector>

#include "attune/tensor/tensor.h"

namespace attune {

class Transformer;

/// The attention weights of each layer: float32 [1, heads, queries, keys]. The weights of a query sum to 1.
struct TranslationAttention {
  std::vector<Tensor> encoder;  // of the source over itself
  std::vector<Tensor> decoder;  // of the target over itself
  std::vector<Tensor> cross;    // of the target over the source
};

/// One pass over a source and its translation, as in training: the decoder reads all tokens of the translation at once.
/// `source` is what the encoder reads, TranslationRequests::encode(). `target` is what the decoder reads,
/// TranslationRequests::decoder_input(); with the row of a token it predicts the token after it. Memory and time grow
/// with the squares of both lengths. Throws ShapeError and DataError when a sequence is empty or too long for the
/// model.
TranslationAttention translation_attention(const Transformer& model, std::span<const int32_t> source,
                                           std::span<const int32_t> target);

/// TranslationAttention::cross alone; memory grows with the product of the lengths.
std::vector<Tensor> cross_attention_weights(const Transformer& model, std::span<const int32_t> source,
                                            std::span<const int32_t> target);

}  // namespace attune
