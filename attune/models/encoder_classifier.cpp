#include "attune/models/encoder_classifier.h"

#include "attune/base/fail.h"
#include "attune/ops/gather.h"
#include "attune/ops/mean_pool.h"

namespace attune {
namespace {

Tensor encode_tokens(const Embeddings& embedding, const Encoder& encoder, const PackedTokens& tokens,
                     std::vector<Tensor>* weights) {
  const AttentionMask mask{.queries = tokens.sequences, .keys = tokens.sequences};
  return encoder(embedding(tokens.ids, positions_of(tokens.sequences), tokens.types), mask, weights);
}

}  // namespace

EncoderClassifier::EncoderClassifier(TransformerConfig config, Parts parts)
    : config_(std::move(config)), parts_(std::move(parts)) {}

Tensor EncoderClassifier::encode(const PackedTokens& tokens, std::vector<Tensor>* weights) const {
  return encode_tokens(*parts_.embedding, *parts_.encoder, tokens, weights);
}

Tensor EncoderClassifier::operator()(const PackedTokens& tokens) const {
  const Sequences& sequences = tokens.sequences;
  std::vector<int32_t> first;
  for (int64_t s = 0; s < sequences.count(); ++s) {
    if (sequences.length(s) < 1) fail<ShapeError>("classifier: sequence {} has no tokens", s);
    first.push_back(static_cast<int32_t>(sequences.begin(s)));
  }
  const Tensor states = encode(tokens);
  const Tensor text =
      config_.pooling == Pooling::mean ? mean_pool(states, sequences) : gather(states, std::move(first));
  return (*parts_.head)(parts_.pooler ? (*parts_.pooler)(text) : text);
}

CrossEntropy EncoderClassifier::loss(const PackedTokens& tokens, const Indices& labels,
                                     const CrossEntropyOptions& options) const {
  return cross_entropy((*this)(tokens), labels, options);
}

void EncoderClassifier::visit(Visitor& v) {
  v("embedding", *parts_.embedding);
  v("encoder", *parts_.encoder);
  if (parts_.pooler) v("pooler", *parts_.pooler);
  v("head", *parts_.head);
}

EncoderMaskedLm::EncoderMaskedLm(TransformerConfig config, Parts parts)
    : config_(std::move(config)), parts_(std::move(parts)) {}

Tensor EncoderMaskedLm::encode(const PackedTokens& tokens) const {
  return encode_tokens(*parts_.embedding, *parts_.encoder, tokens, nullptr);
}

CrossEntropy EncoderMaskedLm::loss(const PackedTokens& tokens, const Indices& rows, const Indices& labels,
                                   const CrossEntropyOptions& options) const {
  return parts_.projection->loss(transformed(gather(encode(tokens), rows)), labels, options);
}

void EncoderMaskedLm::visit(Visitor& v) {
  v("embedding", *parts_.embedding);
  v("encoder", *parts_.encoder);
  if (parts_.transform) v("transform", *parts_.transform);
  v("projection", *parts_.projection);
}

EncoderModel::EncoderModel(TransformerConfig config, Parts parts)
    : config_(std::move(config)), parts_(std::move(parts)) {}

Tensor EncoderModel::encode(const PackedTokens& tokens) const {
  return encode_tokens(*parts_.embedding, *parts_.encoder, tokens, nullptr);
}

void EncoderModel::visit(Visitor& v) {
  v("embedding", *parts_.embedding);
  v("encoder", *parts_.encoder);
}

}  // namespace attune
