#pragma once
// The encoder-decoder Transformer of Vaswani et al. 2017.

#include <memory>
#include <optional>

#include "attune/models/config.h"
#include "attune/models/packed_tokens.h"
#include "attune/nn/attention/mask.h"
#include "attune/nn/decoder.h"
#include "attune/nn/embeddings.h"
#include "attune/nn/encoder.h"
#include "attune/nn/projection_layer.h"

namespace [[gnu::visibility("default")]] attune {

/// What a head of the decoder's cross-attention learns beside the translation.
struct GuidedAlignment {
  AlignmentLinks links = {};
  double weight = 0;
};

class Transformer final : public Module {
 public:
  struct Parts {
    std::unique_ptr<Embeddings> source_embedding, target_embedding;
    std::unique_ptr<Encoder> encoder;
    std::unique_ptr<Decoder> decoder;
    std::unique_ptr<ProjectionLayer> projection;
  };
  Transformer(TransformerConfig config, Parts parts);

  // Padded batches, as in the literature.

  /// src int32 [batch, length] -> [batch, length, d_model]; zeros at padding if the mask has lengths.
  Tensor encode(const Tensor& src, const Mask& src_mask) const;
  /// memory [batch, source length, d_model], tgt int32 [batch, length] -> [batch, length, d_model]; zeros as above.
  Tensor decode(const Tensor& memory, const Mask& src_mask, const Tensor& tgt, const Mask& tgt_mask) const;
  /// The same with the attention weights of every layer.
  EncoderOutput encode_with_weights(const Tensor& src, const Mask& src_mask) const;
  DecoderOutput decode_with_weights(const Tensor& memory, const Mask& src_mask, const Tensor& tgt,
                                    const Mask& tgt_mask) const;
  /// x [..., d_model] -> logits [..., target_vocab]
  Tensor project(const Tensor& x) const { return (*parts_.projection)(x); }
  /// x [rows, d_model] -> only the logits columns[r] of row r, see linear_columns()
  Tensor project(const Tensor& x, std::span<const std::span<const int32_t>> columns) const {
    return (*parts_.projection)(x, columns);
  }

  // Packed batches, for training and decoding.

  /// -> [source tokens, d_model]
  Tensor encode(const PackedTokens& src) const;
  /// `memory` is encode(src); -> [target tokens, d_model]
  Tensor decode(const Tensor& memory, const Sequences& source, const PackedTokens& tgt) const;
  /// The same with the attention weights of every layer.
  EncoderOutput encode_with_weights(const PackedTokens& src) const;
  DecoderOutput decode_with_weights(const Tensor& memory, const Sequences& source, const PackedTokens& tgt) const;
  /// DecoderOutput::cross_weights alone.
  std::vector<Tensor> cross_weights(const Tensor& memory, const Sequences& source, const PackedTokens& tgt) const;
  /// Cross entropy of `labels` [target tokens] given src and the decoder input tgt.
  CrossEntropy loss(const PackedTokens& src, const PackedTokens& tgt, const Indices& labels,
                    const CrossEntropyOptions& options) const;
  /// The same plus guided.weight * guided_attention_loss() of the configuration's alignment head; both are scaled
  /// alike. guided.links are links of the rows of tgt with those of src. CrossEntropy::guided_loss is the part that was
  /// added. Throws ConfigError for a model without such a head.
  CrossEntropy loss(const PackedTokens& src, const PackedTokens& tgt, const Indices& labels,
                    const CrossEntropyOptions& options, const GuidedAlignment& guided) const;

  // Decoding step by step. `memory` is encode(src).

  KvCache start(const Tensor& memory, const Sequences& source) const;
  /// A cache without rows; add() can add sentences at any time.
  KvCache start() const { return parts_.decoder->make_cache(); }
  /// Appends one row for each sentence.
  void add(const Tensor& memory, const Sequences& source, KvCache& cache) const;
  /// Takes the next token of each row, tokens[r]; returns the logits of the token after it, [rows, target_vocab].
  /// Throws ShapeError unless there is one token for each row of the cache.
  Tensor step(std::span<const int32_t> tokens, KvCache& cache) const;
  /// Takes the next counts[r] tokens of each row r, row after row; a count may be 0. Returns states, from which
  /// project() computes logits, and on request the weights of the cross-attention. Throws ShapeError.
  DecoderStep step_states(std::span<const int32_t> tokens, std::span<const int32_t> counts, KvCache& cache,
                          bool with_cross_weights = false) const;

  const TransformerConfig& config() const { return config_; }
  /// The head that word alignments were trained on; nothing without one.
  std::optional<CrossHead> alignment_head() const;
  const Encoder& encoder() const { return *parts_.encoder; }
  const Decoder& decoder() const { return *parts_.decoder; }
  void visit(Visitor& v) override;

 private:
  struct EncoderInput {
    Tensor x;
    AttentionMask mask;
    Packing packing = {};  // of a padded batch
  };
  struct DecoderInput {
    Tensor x, memory;
    AttentionMask self_mask, cross_mask;
    Packing packing = {};  // of a padded batch
  };
  EncoderInput encoder_input(const PackedTokens& src) const;
  EncoderInput encoder_input(const Tensor& src, const Mask& src_mask) const;
  DecoderInput decoder_input(const Tensor& memory, const Sequences& source, const PackedTokens& tgt) const;
  DecoderInput decoder_input(const Tensor& memory, const Mask& src_mask, const Tensor& tgt, const Mask& tgt_mask) const;

  TransformerConfig config_;
  Parts parts_;
};

/// Parameters are initialised from `seed`. Throws ConfigError naming the field.
std::unique_ptr<Transformer> build_transformer(const TransformerConfig& config, uint64_t seed = 1);

}  // namespace attune
