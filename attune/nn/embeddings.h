#pragma once

#include <memory>

#include "attune/nn/input_embedding.h"
#include "attune/nn/layer_norm.h"
#include "attune/nn/linear.h"
#include "attune/nn/positional_encoding.h"
#include "attune/ops/residual.h"

namespace [[gnu::visibility("default")]] attune {

/// The input of a stack of layers: W dropout(norm(embedding(ids) + type + position)). Type, position, norm and the
/// projection W may be missing.
///   ids, positions, types [tokens] -> [tokens, d_model]
/// Source: Vaswani et al. 2017, sections 3.4 and 3.5; Devlin et al. 2019 for types and norm; Lan et al. 2020 for W,
/// with tables that are narrower than d_model.
class Embeddings final : public Module {
 public:
  struct Parts {
    std::unique_ptr<InputEmbedding> token;
    std::unique_ptr<InputEmbedding> type = {};  // all but `token` may be null
    std::unique_ptr<Positions> position = {};
    std::unique_ptr<LayerNorm> norm = {};
    std::unique_ptr<Linear> projection = {};
  };
  /// `dropout` is applied before the projection; pass 0 if `position` is last before it and applies it.
  Embeddings(Parts parts, double dropout) : parts_(std::move(parts)), dropout_(dropout) {}

  /// No `types`: every token has type 0. They are ignored where there are no types.
  Tensor operator()(const Indices& ids, const Indices& positions, const Indices& types = {}) const {
    Tensor x = (*parts_.token)(ids);
    if (parts_.type) x = residual_dropout(x, (*parts_.type)(types.empty() ? zeros(ids.size()) : types));
    if (parts_.position) x = (*parts_.position)(x, positions);
    if (parts_.norm) x = (*parts_.norm)(x);
    x = dropout_(x);
    return parts_.projection ? (*parts_.projection)(x) : x;
  }
  const Tensor& weight() const { return parts_.token->weight(); }
  void visit(Visitor& v) override {
    parts_.token->visit(v);  // "weight"
    if (parts_.type) v("type", *parts_.type);
    if (parts_.position) v("position", *parts_.position);
    if (parts_.norm) v("norm", *parts_.norm);
    if (parts_.projection) v("projection", *parts_.projection);
    v("dropout", dropout_);
  }

 private:
  static Indices zeros(int64_t count) { return std::vector<int32_t>(static_cast<size_t>(count), 0); }

  Parts parts_;
  Dropout dropout_;
};

}  // namespace attune
