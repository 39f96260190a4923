#include "attune/models/encoder_classifier.h"

#include "attune/base/fail.h"
#include "attune/ops/gather.h"
#include "attune/ops/mean_pool.h"

namespace attune {
namespace {

Tensor embed(const Embeddings& embedding, const PackedTokens& tokens) {
  return embedding(tokens.ids, tokens.sequences, tokens.types);
}

AttentionMask mask_of(const PackedTokens& tokens) {
  return {.queries = tokens.sequences, .keys = tokens.sequences};
}

}  // namespace

EncoderClassifier::EncoderClassifier(TransformerConfig config, Parts parts)
    : config_(std::move(config)), parts_(std::move(parts)) {}

Tensor EncoderClassifier::encode(const PackedTokens& tokens) const {
  return (*parts_.encoder)(embed(*parts_.embedding, tokens), mask_of(tokens));
}

EncoderOutput EncoderClassifier::encode_with_weights(const PackedTokens& tokens) const {
  return parts_.encoder->forward(embed(*parts_.embedding, tokens), mask_of(tokens));
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
  return (*parts_.head)((*parts_.dropout)(parts_.pooler ? (*parts_.pooler)(text) : text));
}

CrossEntropy EncoderClassifier::loss(const PackedTokens& tokens, const Indices& labels,
                                     const CrossEntropyOptions& options) const {
  if (config_.label_scores != LabelScores::softmax)
    fail<ConfigError>("label_scores = \"{}\": cross entropy needs \"softmax\"", enum_name(config_.label_scores));
  return cross_entropy((*this)(tokens), labels, options);
}

SquaredError EncoderClassifier::regression_loss(const PackedTokens& tokens, std::span<const float> numbers,
                                                double scale) const {
  if (!config_.is_regression() || config_.labels.size() != 1)
    fail<ConfigError>("label_scores = \"{}\", {} labels: squared errors need \"none\" and one",
                      enum_name(config_.label_scores), config_.labels.size());
  const Tensor found = (*this)(tokens);
  const Tensor right = Tensor::from({std::ssize(numbers), 1}, numbers, found.device());
  return squared_error(found, right.to(found.dtype()), scale);
}

void EncoderClassifier::visit(Visitor& v) {
  v("embedding", *parts_.embedding);
  v("encoder", *parts_.encoder);
  if (parts_.pooler) v("pooler", *parts_.pooler);
  v("dropout", *parts_.dropout);
  v("head", *parts_.head);
}

EncoderMaskedLm::EncoderMaskedLm(TransformerConfig config, Parts parts)
    : config_(std::move(config)), parts_(std::move(parts)) {}

Tensor EncoderMaskedLm::encode(const PackedTokens& tokens) const {
  return (*parts_.encoder)(embed(*parts_.embedding, tokens), mask_of(tokens));
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
  return (*parts_.encoder)(embed(*parts_.embedding, tokens), mask_of(tokens));
}

void EncoderModel::visit(Visitor& v) {
  v("embedding", *parts_.embedding);
  v("encoder", *parts_.encoder);
}

}  // namespace attune
