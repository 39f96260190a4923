#pragma once
// A decoder-only language model: Radford et al. 2018, "Improving Language Understanding by Generative Pre-Training".

#include <memory>

#include "attune/models/config.h"
#include "attune/models/packed_tokens.h"
#include "attune/nn/decoder.h"
#include "attune/nn/embeddings.h"
#include "attune/nn/projection_layer.h"

namespace [[gnu::visibility("default")]] attune {

class DecoderLm final : public Module {
 public:
  struct Parts {
    std::unique_ptr<Embeddings> embedding;
    std::unique_ptr<Decoder> decoder;          // without cross-attention
    std::unique_ptr<Linear> state_projection;  // to the width of the embedding; null where that is d_model
    std::unique_ptr<ProjectionLayer> projection;
  };
  DecoderLm(TransformerConfig config, Parts parts);

  /// Returns the state of each token, which depends on it and the tokens before it in its sequence: [tokens, d_model].
  Tensor decode(const PackedTokens& tokens) const;
  /// The same with the attention weights of every layer; those of cross-attention are undefined.
  DecoderOutput decode_with_weights(const PackedTokens& tokens) const;
  /// x [..., d_model] -> logits of the next token [..., vocab]
  Tensor project(const Tensor& x) const { return (*parts_.projection)(projected_states(x)); }
  /// Cross entropy of `labels` [tokens]: the token that follows each one.
  CrossEntropy loss(const PackedTokens& tokens, const Indices& labels, const CrossEntropyOptions& options) const;

  // Generation step by step. A row of the cache may have up to context_length tokens.

  KvCache start(int64_t rows = 0) const { return parts_.decoder->make_cache(rows); }
  /// Takes one prompt, not empty, for each row of a new cache; returns the logits of the next token, [rows, vocab].
  /// Throws ShapeError, and DataError for a prompt longer than context_length.
  Tensor prompt(const PackedTokens& prompts, KvCache& cache) const;
  /// Takes the next token of each row, tokens[r]; returns the logits of the token after it, [rows, vocab]. Throws
  /// ShapeError, and DataError when a row has context_length tokens already.
  Tensor step(std::span<const int32_t> tokens, KvCache& cache) const;

  // The same, but they return states [tokens, d_model], from which project() computes logits. They take the next
  // counts[r] tokens of each row r, row after row; a count may be 0. They throw as above.

  /// For rows that have no tokens yet: Decoder::prompts().
  Tensor prompt_states(std::span<const int32_t> tokens, std::span<const int32_t> counts, KvCache& cache) const;
  /// For rows with any past: Decoder::steps().
  Tensor step_states(std::span<const int32_t> tokens, std::span<const int32_t> counts, KvCache& cache) const;

  const TransformerConfig& config() const { return config_; }
  const Decoder& decoder() const { return *parts_.decoder; }
  void visit(Visitor& v) override;

 private:
  Tensor projected_states(const Tensor& x) const { return parts_.state_projection ? (*parts_.state_projection)(x) : x; }
  Tensor embed_next(std::span<const int32_t> tokens, std::span<const int32_t> counts, const Indices& positions,
                    const KvCache& cache) const;

  TransformerConfig config_;
  Parts parts_;
};

/// Parameters are initialised from `seed`. Throws ConfigError naming the field.
std::unique_ptr<DecoderLm> build_decoder_lm(const TransformerConfig& config, uint64_t seed = 1);

}  // namespace attune
