#pragma once

#include <memory>

#include "attune/nn/input_embedding.h"
#include "attune/nn/layer_norm.h"
#include "attune/nn/linear.h"
#include "attune/nn/positional_encoding.h"
#include "attune/ops/sequences.h"

namespace [[gnu::visibility("default")]] attune {

/// The input of a stack of layers: W dropout(norm(V embedding(ids) + type + position)). All but the embedding may be
/// missing.
///   ids, positions, types [tokens] -> [tokens, d_model]
/// Source: Vaswani et al. 2017, sections 3.4 and 3.5; Devlin et al. 2019 for types and norm; Lan et al. 2020 for W,
/// with tables of another width than d_model; Zhang et al. 2022 for V, with such a table of tokens alone.
class Embeddings final : public Module {
 public:
  struct Parts {
    std::unique_ptr<InputEmbedding> token;
    std::unique_ptr<Linear> token_projection = {};  // all but `token` may be null
    std::unique_ptr<InputEmbedding> type = {};
    std::unique_ptr<Positions> position = {};
    std::unique_ptr<LayerNorm> norm = {};
    std::unique_ptr<Linear> projection = {};
  };
  /// `dropout` is applied before the projection. Pass 0 if `position` is the last part before it, and has the dropout.
  Embeddings(Parts parts, double dropout) : parts_(std::move(parts)), dropout_(dropout) {}

  /// Without `types`, every token has type 0. Without a table of types, they are ignored. A token without a position
  /// (see SinusoidOptions) gets none, whatever `positions` say.
  Tensor operator()(const Indices& ids, const Indices& positions, const Indices& types = {}) const;
  /// Whole sequences: the first token of each has position 0, and a token without a position is not counted.
  Tensor operator()(const Indices& ids, const Sequences& sequences, const Indices& types = {}) const;

  const Tensor& weight() const { return parts_.token->weight(); }
  void visit(Visitor& v) override {
    parts_.token->visit(v);  // "weight"
    if (parts_.token_projection) v("token_projection", *parts_.token_projection);
    if (parts_.type) v("type", *parts_.type);
    if (parts_.position) v("position", *parts_.position);
    if (parts_.norm) v("norm", *parts_.norm);
    if (parts_.projection) v("projection", *parts_.projection);
    v("dropout", dropout_);
  }

 private:
  int64_t padding_token() const { return parts_.position ? parts_.position->padding_token() : -1; }

  Parts parts_;
  Dropout dropout_;
};

}  // namespace attune
