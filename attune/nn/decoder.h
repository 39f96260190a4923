#pragma once

#include <memory>
#include <vector>

#include "attune/nn/decoder_layer.h"

namespace [[gnu::visibility("default")]] attune {

/// Attention weights of every layer, [sequences, heads, queries, keys] each.
struct DecoderWeights {
  std::vector<Tensor> self;
  std::vector<Tensor> cross;
};

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
  /// Whole prompts, one for each row of a cache that has no tokens yet: x [prompt tokens, d_model] -> same. Equals
  /// operator() with a causal mask. For a decoder without cross-attention.
  Tensor prompt(const Tensor& x, const Sequences& prompts, KvCache& cache) const;
  /// The next token of every row: x [rows, d_model] -> [rows, d_model]. Equals the last position of operator().
  Tensor step(const Tensor& x, KvCache& cache) const;
  /// The next counts[r] tokens of row r, row after row: x [tokens, d_model] -> [tokens, d_model]. Equals the last
  /// positions of operator(), and one step() after the other.
  Tensor steps(const Tensor& x, std::span<const int32_t> counts, KvCache& cache) const;

  const std::vector<std::shared_ptr<DecoderLayer>>& layers() const { return layers_; }
  void visit(Visitor& v) override;

 private:
  std::vector<std::shared_ptr<DecoderLayer>> layers_;
  std::unique_ptr<LayerNorm> norm_;  // null: none
};

}  // namespace gnu::visibility("default")]]attune
