#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "attune/nn/decoder_layer.h"
#include "attune/nn/layer_stack.h"

namespace [[gnu::visibility("default")]] attune {

/// States [target tokens, d_model] and the attention weights of every layer, see AttentionOutput. Weights are undefined
/// where nobody asked for them, where there is no cross-attention, and for a layer that is left out
/// (set_layer_dropout()).
struct DecoderOutput {
  Tensor states;
  std::vector<Tensor> self_weights, cross_weights;
};

/// States [target tokens, d_model] and the loss of a guided head, a scalar.
struct GuidedDecoderOutput {
  Tensor states, loss;
};

/// A head of the cross-attention; both count from 0.
struct CrossHead {
  int64_t layer = 0, head = 0;
};

/// Which cross-attention weights a decoding step returns.
struct CrossWeights {
  bool wanted = false;
  std::optional<CrossHead> head = {};  // none: the mean over the heads of the last layer
};

/// The result of a decoding step.
struct DecoderStep {
  Tensor states;  // [new tokens, d_model]
  /// On request, the cross-attention weights of each new token: [new tokens, longest source], zeros beyond a source;
  /// else undefined.
  Tensor cross_weights = {};
};

/// Throws ShapeError unless there is one count for each row of the cache and the counts add up to the number of tokens.
void check_step_tokens(std::span<const int32_t> tokens, std::span<const int32_t> counts, const KvCache& cache);

/// A stack of decoder layers, followed by `final_norm` unless it is null. `relative_bias` is the one that the layers
/// were built with, or null. As in Encoder, a layer may stand several times in `layers`.
class Decoder final : public LayerStack {
 public:
  Decoder(std::vector<std::shared_ptr<DecoderLayer>> layers, std::unique_ptr<LayerNorm> final_norm,
          std::shared_ptr<RelativeBias> relative_bias = {});
  /// x [target tokens, d_model], memory [source tokens, d_model] -> [target tokens, d_model]. A decoder without
  /// cross-attention ignores memory and cross_mask.
  Tensor operator()(const Tensor& x, const Tensor& memory, const AttentionMask& self_mask,
                    const AttentionMask& cross_mask) const;
  /// The same with the attention weights for which the masks ask. Keeps all activations for the gradient.
  DecoderOutput forward(const Tensor& x, const Tensor& memory, const AttentionMask& self_mask,
                        const AttentionMask& cross_mask) const;
  /// Returns the states of operator(), and the loss of cross_mask.guide in the cross-attention of layer `layer`, from
  /// 0. This layer is never left out, and keeps all its activations for the gradient. Throws ConfigError where there is
  /// no such layer, or it has no cross-attention.
  GuidedDecoderOutput guided(const Tensor& x, const Tensor& memory, const AttentionMask& self_mask,
                             const AttentionMask& cross_mask, int64_t layer) const;

  /// A cache of `rows` rows. For a decoder with cross-attention, begin with 0 rows and call add_sources().
  KvCache make_cache(int64_t rows = 0) const;
  /// Appends one row for each source sentence; `memory` is the encoder's output on `source`.
  void add_sources(const Tensor& memory, const Sequences& source, KvCache& cache) const;
  /// Takes the first counts[r] tokens of each row r, row after row: x [tokens, d_model] -> same. A row with a count
  /// above 0 must have no tokens yet. Equals operator() with a causal mask, and is faster than steps() for long
  /// prompts. Only for a decoder without cross-attention. Throws ShapeError.
  Tensor prompts(const Tensor& x, std::span<const int32_t> counts, KvCache& cache) const;
  /// Takes the next counts[r] tokens of each row r, row after row, 0 or more: x [tokens, d_model]. `positions` are
  /// cache.positions(counts). The states equal those that operator() gives for these tokens, and those of steps() with
  /// one token at a time. Throws ShapeError.
  DecoderStep steps(const Tensor& x, std::span<const int32_t> counts, const Indices& positions, KvCache& cache,
                    const CrossWeights& cross_weights = {}) const;

  const std::vector<std::shared_ptr<DecoderLayer>>& layers() const { return layers_; }
  void visit(Visitor& v) override;

 private:
  std::vector<std::shared_ptr<DecoderLayer>> layers_;
  std::unique_ptr<LayerNorm> norm_;              // null: none
  std::shared_ptr<RelativeBias> relative_bias_;  // that the layers share; null: none
};

}  // namespace attune
