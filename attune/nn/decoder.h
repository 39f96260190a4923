#pragma once

#include <memory>
#include <span>
#include <vector>

#include "attune/nn/decoder_layer.h"

namespace [[gnu::visibility("default")]] attune {

/// Attention weights of every layer, [sequences, heads, queries, keys] each.
struct DecoderWeights {
  std::vector<Tensor> self;
  std::vector<Tensor> cross;
};

/// What a step of decoding returns.
struct DecoderStep {
  Tensor states;  // [new tokens, d_model]
  /// On request, what the last layer's cross-attention of each new token gave to the tokens of its source, the mean
  /// over heads: [new tokens, longest source], zeros beyond a source.
  Tensor cross_weights = {};
};

/// Throws ShapeError when there is not one count for each row of the cache, or not as many tokens as they say.
void check_step_tokens(std::span<const int32_t> tokens, std::span<const int32_t> counts, const KvCache& cache);

/// A stack of decoder layers, with a norm after the last one where `final_norm` is given. As in Encoder, one layer may
/// stand at every place.
class Decoder final : public Module {
 public:
  Decoder(std::vector<std::shared_ptr<DecoderLayer>> layers, std::unique_ptr<LayerNorm> final_norm);
  /// x [target tokens, d_model], memory [source tokens, d_model] -> [target tokens, d_model]. A decoder without
  /// cross-attention does not look at memory and cross_mask.
  Tensor operator()(const Tensor& x, const Tensor& memory, AttentionMask self_mask, AttentionMask cross_mask,
                    DecoderWeights* weights = nullptr) const;

  /// A cache of `rows` rows. One for a decoder with cross-attention begins without any.
  KvCache make_cache(int64_t rows = 0) const;
  /// One more row for each source sentence, after those that are there; `memory` is the encoder's output on `source`.
  void add_sources(const Tensor& memory, const Sequences& source, KvCache& cache) const;
  /// The first tokens of some rows, of which the cache has none yet: counts[r] of row r, row after row, 0 for all
  /// others. x [tokens, d_model] -> same. Equals operator() with a causal mask, and is faster than steps() for long
  /// prompts. For a decoder without cross-attention. Throws ShapeError.
  Tensor prompts(const Tensor& x, std::span<const int32_t> counts, KvCache& cache) const;
  /// The next counts[r] tokens of row r, row after row; a row may have none: x [tokens, d_model]. `positions` are
  /// cache.positions(counts). The states equal the last positions of operator(), and those of one token after the
  /// other. Throws ShapeError.
  DecoderStep steps(const Tensor& x, std::span<const int32_t> counts, const Indices& positions, KvCache& cache,
                    bool with_cross_weights = false) const;

  const std::vector<std::shared_ptr<DecoderLayer>>& layers() const { return layers_; }
  void visit(Visitor& v) override;

 private:
  std::vector<std::shared_ptr<DecoderLayer>> layers_;
  std::unique_ptr<LayerNorm> norm_;  // null: none
};

}  // namespace attune
