#pragma once
// An encoder that assigns one of several labels or a number to a text, and the same encoder for pretraining, which
// predicts masked tokens: Devlin et al. 2019, "BERT".

#include <memory>
#include <span>

#include "attune/models/config.h"
#include "attune/models/packed_tokens.h"
#include "attune/nn/dropout.h"
#include "attune/nn/embeddings.h"
#include "attune/nn/encoder.h"
#include "attune/nn/head_transform.h"
#include "attune/nn/projection_layer.h"
#include "attune/ops/squared_error.h"

namespace [[gnu::visibility("default")]] attune {

class EncoderClassifier final : public Module {
 public:
  struct Parts {
    std::unique_ptr<Embeddings> embedding;
    std::unique_ptr<Encoder> encoder;
    std::unique_ptr<HeadTransform> pooler;  // or null
    std::unique_ptr<Linear> head;
    std::unique_ptr<Dropout> dropout;  // on what the head reads
  };
  EncoderClassifier(TransformerConfig config, Parts parts);

  /// Returns the state of each token: [tokens, d_model].
  Tensor encode(const PackedTokens& tokens) const;
  /// The same with the attention weights of every layer.
  EncoderOutput encode_with_weights(const PackedTokens& tokens) const;
  /// Logits of the labels, [sequences, labels]. Throws ShapeError for a sequence without tokens.
  Tensor operator()(const PackedTokens& tokens) const;
  /// Cross entropy of `labels` [sequences]. Throws ConfigError unless label_scores = "softmax".
  CrossEntropy loss(const PackedTokens& tokens, const Indices& labels, const CrossEntropyOptions& options) const;
  /// Squared errors of a regression with one number, see squared_error(); `numbers` [sequences] are the right ones.
  /// Throws ConfigError for other models.
  SquaredError regression_loss(const PackedTokens& tokens, std::span<const float> numbers, double scale = 0) const;

  const TransformerConfig& config() const { return config_; }
  void visit(Visitor& v) override;

 private:
  TransformerConfig config_;
  Parts parts_;
};

class EncoderMaskedLm final : public Module {
 public:
  struct Parts {
    std::unique_ptr<Embeddings> embedding;
    std::unique_ptr<Encoder> encoder;
    std::unique_ptr<HeadTransform> transform = {};  // or null
    std::unique_ptr<ProjectionLayer> projection;
  };
  EncoderMaskedLm(TransformerConfig config, Parts parts);

  Tensor encode(const PackedTokens& tokens) const;
  /// States [..., d_model] -> logits of the tokens that stand there [..., vocab]
  Tensor project(const Tensor& states) const { return (*parts_.projection)(transformed(states)); }
  /// Cross entropy of `labels` [n], the original tokens at `rows` [n] of the packed text.
  CrossEntropy loss(const PackedTokens& tokens, const Indices& rows, const Indices& labels,
                    const CrossEntropyOptions& options) const;

  const TransformerConfig& config() const { return config_; }
  void visit(Visitor& v) override;

 private:
  Tensor transformed(const Tensor& states) const { return parts_.transform ? (*parts_.transform)(states) : states; }

  TransformerConfig config_;
  Parts parts_;
};

/// The encoder alone, for embeddings of tokens and texts.
class EncoderModel final : public Module {
 public:
  struct Parts {
    std::unique_ptr<Embeddings> embedding;
    std::unique_ptr<Encoder> encoder;
  };
  EncoderModel(TransformerConfig config, Parts parts);

  /// Returns the state of each token: [tokens, d_model].
  Tensor encode(const PackedTokens& tokens) const;

  const TransformerConfig& config() const { return config_; }
  void visit(Visitor& v) override;

 private:
  TransformerConfig config_;
  Parts parts_;
};

/// Parameters are initialised from `seed`; those of embedding and encoder have the same names in all models. Throw
/// ConfigError naming the field.
std::unique_ptr<EncoderClassifier> build_encoder_classifier(const TransformerConfig& config, uint64_t seed = 1);
std::unique_ptr<EncoderMaskedLm> build_encoder_masked_lm(const TransformerConfig& config, uint64_t seed = 1);
std::unique_ptr<EncoderModel> build_encoder_model(const TransformerConfig& config, uint64_t seed = 1);

}  // namespace attune
